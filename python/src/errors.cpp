// C++ errors as the exceptions of kilin/errors.py, with the message as it is; and those of signals.
#include "core/error.h"
#include "python/src/bindings.h"

namespace kilin::python {

namespace {

const char* exception_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return "InvalidArgument";
    case ErrorCode::NotFound:
      return "NotFound";
    case ErrorCode::Unavailable:
      return "Unavailable";
    case ErrorCode::OutOfOrder:
      return "OutOfOrder";
    case ErrorCode::ResourceExhausted:
      return "ResourceExhausted";
    default:
      return "Error";
  }
}

}  // namespace

void check_signals() {
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

void bind_errors() {
  py::register_exception_translator([](std::exception_ptr p) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& error) {
      const py::object type = py::module_::import("kilin.errors").attr(exception_name(error.code()));
      PyErr_SetString(type.ptr(), displayable(error.what()).c_str());
    }
  });
}

}  // namespace kilin::python
