// A trace whose reader is the body of a Python `with`. The pass runs without the GIL, on a thread that never touches Python.
#include "core/error.h"
#include "inside/trace/interleaved_trace.h"
#include "python/src/bindings.h"

namespace kilin::python {

namespace {

using Ids = py::array_t<int32_t, py::array::c_style | py::array::forcecast>;

class PyTrace {
 public:
  PyTrace(std::shared_ptr<Model> model, std::vector<TracePrompt> prompts, TraceOptions options)
      : model_(std::move(model)), output_ids_(prompts.size()) {
    options.on_token = [this](size_t prompt, int32_t id) {
      const MutexLock lock(mutex_);
      output_ids_[prompt].push_back(id);
    };
    options.poll = check_signals;
    trace_ = std::make_shared<InterleavedTrace>(model_->engine, std::move(prompts), std::move(options));
  }
  ~PyTrace() { close(); }
  PyTrace(const PyTrace&) = delete;
  PyTrace& operator=(const PyTrace&) = delete;

  // Arrays by prompt, which look at the model's own memory until the pass goes on, and whether they are blank.
  py::tuple wait_for(const std::string& name, size_t step) {
    const auto trace = open();
    const TracedValue& value = [&]() -> const TracedValue& {
      const py::gil_scoped_release release;
      return trace->wait_for(name, step);
    }();
    py::list arrays;
    for (size_t n = 0; n < value.prompts(); ++n) arrays.append(array_of(value.of(n), py::none(), value.is_writable()));
    return py::make_tuple(arrays, value.is_blank());
  }

  void finish() {
    const auto trace = open();
    const py::gil_scoped_release release;
    trace->finish();
  }

  // A call of another thread that still waits keeps it until that returns.
  void close() {
    auto trace = std::exchange(trace_, nullptr);
    const py::gil_scoped_release release;
    trace.reset();
  }

  size_t steps() { return open()->steps(); }
  std::vector<std::vector<int32_t>> output_ids() {
    const MutexLock lock(mutex_);
    return output_ids_;
  }

 private:
  std::shared_ptr<InterleavedTrace> open() const {
    if (!trace_) raise(ErrorCode::OutOfOrder, "the trace is closed");
    return trace_;
  }

  std::shared_ptr<Model> model_;
  Mutex mutex_;  // of what the pass's thread writes
  std::vector<std::vector<int32_t>> output_ids_ KILIN_GUARDED_BY(mutex_);
  std::shared_ptr<InterleavedTrace> trace_;  // changed with the GIL
};

}  // namespace

void bind_trace(py::module_& m) {
  py::class_<PyTrace>(m, "Trace")
      .def(py::init([](std::shared_ptr<Model> model, const std::vector<Ids>& prompts, const std::vector<size_t>& cuts,
                       size_t new_tokens, const SamplingParams& sampling) {
             std::vector<TracePrompt> parts;
             for (const Ids& ids : prompts) parts.push_back({ids_of(ids), cuts});
             return std::make_unique<PyTrace>(std::move(model), std::move(parts),
                                              TraceOptions{.new_tokens = new_tokens, .sampling = sampling, .on_token = {}});
           }),
           py::arg("model"), py::arg("prompts"), py::arg("cuts"), py::arg("new_tokens"), py::arg("sampling"))
      .def("wait_for", &PyTrace::wait_for)
      .def("finish", &PyTrace::finish)
      .def("close", &PyTrace::close)
      .def_property_readonly("steps", &PyTrace::steps)
      .def_property_readonly("output_ids", &PyTrace::output_ids);
}

}  // namespace kilin::python
