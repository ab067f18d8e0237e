// What the files of the extension share. Each binds one concept of the public C++ API; all comfort is Python's affair.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <mutex>
#include <optional>
#include <string>

#include "engine/engine.h"
#include "taps/names.h"

namespace kilin::python {

namespace py = pybind11;

/// An engine that Python threads may share: whoever runs it holds the lock. The lock is taken without the GIL, or two threads
/// could wait for each other.
struct Model {
  Model(LoadedModel loaded, const EngineOptions& options);

  Engine engine;
  std::vector<BlockKind> blocks;
  std::mutex running;
};

/// Lets go of the GIL and takes the model, for as long as it lives.
class Running {
 public:
  explicit Running(Model& model) : lock_(model.running) {}

 private:
  py::gil_scoped_release release_;  // first, so that the GIL is taken again after the lock has gone
  std::lock_guard<std::mutex> lock_;
};

/// Raises what the handlers of signals that have come raise: KeyboardInterrupt, after Ctrl-C. Only Python's first thread hears
/// of signals. Takes the GIL; for whoever has let go of it for long.
void check_signals();

/// An array of elements that somebody else owns. @param owner kept alive by the array
py::array array_of(const TensorView& view, const py::object& owner, bool writable);

std::vector<int32_t> ids_of(const py::array_t<int32_t, py::array::c_style | py::array::forcecast>& ids);

void bind_errors();
void bind_arrays(py::module_& m);
void bind_model(py::module_& m);
void bind_generation(py::module_& m);
void bind_trace(py::module_& m);

}  // namespace kilin::python
