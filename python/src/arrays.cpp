// Arrays that look into memory of the engine, and how they are taken along when that memory goes on to other uses.
#include <cstring>

#include "core/error.h"
#include "python/src/bindings.h"

namespace kilin::python {

py::array array_of(const TensorView& view, const py::object& owner, bool writable) {
  std::vector<py::ssize_t> shape, strides;
  for (size_t axis = 0; axis < view.shape().rank(); ++axis) {
    shape.push_back(static_cast<py::ssize_t>(view.shape()[axis]));
    strides.push_back(static_cast<py::ssize_t>(view.stride(axis) * size_of(view.dtype())));
  }
  const py::dtype type = view.dtype() == DType::i32 ? py::dtype::of<int32_t>() : py::dtype::of<float>();
  py::array array(type, shape, strides, view.data(), owner);
  if (!writable) array.attr("flags").attr("writeable") = false;
  return array;
}

std::vector<int32_t> ids_of(const py::array_t<int32_t, py::array::c_style | py::array::forcecast>& ids) {
  if (ids.ndim() != 1) raise(ErrorCode::InvalidArgument, "ids have {} dimensions; expected 1", ids.ndim());
  return {ids.data(), ids.data() + ids.size()};
}

namespace {

// The bytes that an array of positive strides spans: [begin, end).
std::pair<char*, char*> extent(const py::array& array) {
  char* begin = py::detail::array_proxy(array.ptr())->data;
  py::ssize_t last = array.itemsize();
  for (py::ssize_t axis = 0; axis < array.ndim(); ++axis) last += (array.shape(axis) - 1) * array.strides(axis);
  return {begin, begin + (array.size() == 0 ? 0 : last)};
}

// Copies the memory that `whole` looks at, and lets each of `views` that looks into it look into the copy, at the same place:
// views of one another stay so. Only what still refers to the memory need be named.
void detach(const py::array& whole, const std::vector<py::array>& views) {
  const auto [begin, end] = extent(whole);
  py::array copy;
  for (const py::array& view : views) {
    auto* proxy = py::detail::array_proxy(view.ptr());
    char* const data = proxy->data;
    if (data < begin || data >= end) continue;  // a result of its own
    if (!copy.size()) {
      copy = py::array_t<uint8_t>(end - begin);
      std::memcpy(copy.mutable_data(), begin, static_cast<size_t>(end - begin));
    }
    proxy->data = static_cast<char*>(copy.mutable_data()) + (data - begin);
    Py_XDECREF(proxy->base);
    proxy->base = copy.inc_ref().ptr();
  }
}

}  // namespace

void bind_arrays(py::module_& m) { m.def("detach", &detach, py::arg("whole"), py::arg("views")); }

}  // namespace kilin::python
