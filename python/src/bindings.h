// What the files of the extension share. Each binds one concept of the public C++ API; all comfort is Python's affair.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>

#include "engine/engine.h"
#include "taps/names.h"

namespace kilin::python {

namespace py = pybind11;

/// An engine that Python threads may share, as any threads may. What waits for it lets go of the GIL.
struct Model {
  Model(LoadedModel loaded, const EngineOptions& options);

  Engine engine;
  std::vector<BlockKind> blocks;
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
