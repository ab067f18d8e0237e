// Answers, event by event: what Engine::submit gives.
#include <chrono>

#include "core/error.h"
#include "python/src/bindings.h"

namespace kilin::python {

namespace {

using Ids = py::array_t<int32_t, py::array::c_style | py::array::forcecast>;

constexpr std::chrono::milliseconds kSignalInterval(50);  // between two looks at Ctrl-C

// A request that ends with its Python object, whoever left it half done.
class Answer {
 public:
  Answer(std::shared_ptr<Model> model, const Ids& prompt, GenerationParams params)
      : model_(std::move(model)), request_(model_->engine.submit(ids_of(prompt), std::move(params))) {}

  // Waits for what comes next. @returns its text: bytes of whole UTF-8 characters, often empty
  py::bytes step() {
    if (finished_) return "";
    std::optional<Event> event;
    {
      const py::gil_scoped_release release;
      while (!(event = request_->next_within(kSignalInterval))) check_signals();
    }
    if (auto* token = std::get_if<TokenEvent>(&*event)) return token->text;
    finished_ = true;
    const Finish& finish = std::get<Finish>(*event);
    if (finish.error) std::rethrow_exception(finish.error);
    return finish.text;
  }

  bool finished() const { return finished_; }
  // What came of it. @throws OutOfOrder before it has finished
  const kilin::Answer& result() const { return request_->answer(); }

 private:
  std::shared_ptr<Model> model_;  // whose engine runs the request
  std::shared_ptr<Request> request_;
  bool finished_ = false;  // the end was heard
};

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
                       std::vector<std::string> stop_strings) {
        return std::make_unique<Answer>(
            std::move(model), ids,
            GenerationParams{.sampling = sampling, .max_new_tokens = max_new_tokens, .stop_strings = std::move(stop_strings)});
      }))
      .def("step", &Answer::step)
      .def_property_readonly("finished", &Answer::finished)
      .def_property_readonly("text", [](const Answer& a) { return py::bytes(a.result().text); })
      .def_property_readonly("finish_reason", [](const Answer& a) { return std::string(to_string(a.result().finish.reason)); })
      .def_property_readonly("output_ids", [](const Answer& a) { return a.result().ids; });
}

}  // namespace kilin::python
