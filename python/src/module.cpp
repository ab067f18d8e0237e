// kilin._kilin: the C++ engine as the package `kilin` uses it.
#include "core/mapped_ranges.h"
#include "core/version.h"
#include "python/src/bindings.h"

PYBIND11_MODULE(_kilin, m) {
  m.doc() = "The C++ engine behind the package kilin; use that.";
  kilin::explain_lost_mapped_files();  // the interpreter would die without a word
  m.attr("__version__") = std::string(kilin::version());
  kilin::python::bind_errors();
  kilin::python::bind_arrays(m);
  kilin::python::bind_model(m);
  kilin::python::bind_generation(m);
  kilin::python::bind_trace(m);
}
