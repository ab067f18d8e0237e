// Answers, token by token: what Engine::submit gives, moved on by whoever holds it.
#include "core/error.h"
#include "python/src/bindings.h"

namespace kilin::python {

namespace {

using Ids = py::array_t<int32_t, py::array::c_style | py::array::forcecast>;

// A request that ends with its Python object, whoever left it half done.
class Answer {
 public:
  Answer(std::shared_ptr<Model> model, const Ids& prompt, GenerationParams params) : model_(std::move(model)) {
    std::vector<int32_t> ids = ids_of(prompt);
    const Running running(*model_);
    request_ = model_->engine.submit(std::move(ids), std::move(params),
                                     [this](const TokenEvent& event) { shown_.append(event.text); });
  }
  ~Answer() {
    if (!request_ || finished_) return;
    const Running running(*model_);
    request_->cancel();
    try {
      while (!request_->finished()) model_->engine.step();  // its listener goes with this object
    } catch (const std::exception&) {                       // it has ended then
    }
  }
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  // Text that came since the last call, after one more step of the engine; bytes of whole UTF-8 characters.
  py::bytes step() {
    if (finished_) return "";
    std::string shown;
    {
      const Running running(*model_);
      if (!request_->finished() && model_->engine.step() == StepResult::Blocked)
        model_->engine.run(*request_);  // says what it lacks
      if (request_->finished()) shown_ = request_->text().substr(std::min(given_, request_->text().size()));
      given_ += shown_.size();
      shown = std::exchange(shown_, {});
      finished_ = request_->finished();
    }
    return shown;
  }

  // As of the last step() of this answer; one of another thread may have moved it further.
  bool finished() const { return finished_; }
  // What came of it. @throws OutOfOrder before it has finished
  const Request& result() const {
    if (!finished_) raise(ErrorCode::OutOfOrder, "the answer has not ended yet");
    return *request_;
  }

 private:
  std::shared_ptr<Model> model_;
  std::shared_ptr<Request> request_;
  std::string shown_;  // by the listener, in step() of whichever answer moves the engine on; since the last call
  size_t given_ = 0;
  bool finished_ = false;
};

GenerationParams params_of(size_t max_new_tokens, const SamplingParams& sampling, std::vector<int32_t> stop_ids,
                           std::vector<std::string> stop_strings) {
  return {.sampling = sampling,
          .max_new_tokens = max_new_tokens,
          .stop_ids = std::move(stop_ids),
          .stop_strings = std::move(stop_strings)};
}

// The text of ids that come one by one, as Request makes it: whole characters, nothing from a stop string on. Empty for models
// without a tokenizer.
class AnswerText {
 public:
  AnswerText(std::shared_ptr<Model> model, std::vector<std::string> stop_strings) : model_(std::move(model)) {
    const LoadedModel& loaded = model_->engine.loaded();
    if (loaded.tokenizer || !stop_strings.empty()) stream_.emplace(loaded.require_tokenizer(), std::move(stop_strings));
  }

  py::bytes push(int32_t id) { return stream_ ? stream_->push(id) : std::string(); }
  py::bytes finish() { return stream_ ? stream_->finish() : std::string(); }
  bool stopped() const { return stream_ && stream_->stopped(); }

 private:
  std::shared_ptr<Model> model_;  // whose tokenizer the stream uses
  std::optional<TextStream> stream_;
};

}  // namespace

void bind_generation(py::module_& m) {
  py::class_<SamplingParams>(m, "SamplingParams")
      .def(py::init([](double repetition_penalty, double temperature, size_t top_k, double top_p, double min_p, uint64_t seed) {
             const SamplingParams params = {repetition_penalty, temperature, top_k, top_p, min_p, seed};
             params.validate();
             return params;
           }),
           py::kw_only(), py::arg("repetition_penalty") = 1.0, py::arg("temperature") = 0.0, py::arg("top_k") = 0,
           py::arg("top_p") = 1.0, py::arg("min_p") = 0.0, py::arg("seed") = 0);
  py::class_<AnswerText>(m, "AnswerText")
      .def(py::init<std::shared_ptr<Model>, std::vector<std::string>>())
      .def("push", &AnswerText::push)
      .def("finish", &AnswerText::finish)
      .def_property_readonly("stopped", &AnswerText::stopped);
  py::class_<Answer>(m, "Answer")
      .def(py::init([](std::shared_ptr<Model> model, const Ids& ids, size_t max_new_tokens, const SamplingParams& sampling,
                       std::vector<int32_t> stop_ids, std::vector<std::string> stop_strings) {
        return std::make_unique<Answer>(std::move(model), ids,
                                        params_of(max_new_tokens, sampling, std::move(stop_ids), std::move(stop_strings)));
      }))
      .def("step", &Answer::step)
      .def_property_readonly("finished", &Answer::finished)
      .def_property_readonly("text", [](const Answer& a) { return py::bytes(a.result().text()); })
      .def_property_readonly("finish_reason",
                             [](const Answer& a) { return std::string(to_string(a.result().finish_reason())); })
      .def_property_readonly("output_ids", [](const Answer& a) {
        return std::vector<int32_t>(a.result().output_ids().begin(), a.result().output_ids().end());
      });
}

}  // namespace kilin::python
