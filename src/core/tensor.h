// Owners and views of plain arrays of one dtype, row-major unless strides say otherwise.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <type_traits>

#include "core/dtype.h"
#include "core/mat_view.h"
#include "core/shape.h"

namespace kilin {

namespace detail {
template <typename T>
struct DTypeOf;  // a type that no DType stands for does not compile
template <>
struct DTypeOf<float> : std::integral_constant<DType, DType::f32> {};
template <>
struct DTypeOf<f16> : std::integral_constant<DType, DType::f16> {};
template <>
struct DTypeOf<bf16> : std::integral_constant<DType, DType::bf16> {};
template <>
struct DTypeOf<double> : std::integral_constant<DType, DType::f64> {};
template <>
struct DTypeOf<int8_t> : std::integral_constant<DType, DType::i8> {};
template <>
struct DTypeOf<uint8_t> : std::integral_constant<DType, DType::u8> {};
template <>
struct DTypeOf<std::byte> : std::integral_constant<DType, DType::u8> {};
template <>
struct DTypeOf<int16_t> : std::integral_constant<DType, DType::i16> {};
template <>
struct DTypeOf<uint16_t> : std::integral_constant<DType, DType::u16> {};
template <>
struct DTypeOf<int32_t> : std::integral_constant<DType, DType::i32> {};
template <>
struct DTypeOf<uint32_t> : std::integral_constant<DType, DType::u32> {};
template <>
struct DTypeOf<int64_t> : std::integral_constant<DType, DType::i64> {};
template <>
struct DTypeOf<uint64_t> : std::integral_constant<DType, DType::u64> {};
template <>
struct DTypeOf<bool> : std::integral_constant<DType, DType::boolean> {};
}  // namespace detail

/// The DType of elements of type T.
template <typename T>
constexpr DType dtype_of() {
  return detail::DTypeOf<std::remove_const_t<T>>::value;
}

/// Elements that somebody else owns and may write. Strides count elements.
class TensorView {
 public:
  TensorView() = default;
  TensorView(void* data, DType dtype, const Shape& shape) : data_(data), dtype_(dtype), shape_(shape) {
    size_t stride = 1;
    for (size_t axis = shape.rank(); axis-- > 0; stride *= shape[axis]) strides_[axis] = stride;
  }
  TensorView(void* data, DType dtype, const Shape& shape, const std::array<size_t, Shape::kMaxRank>& strides)
      : data_(data), dtype_(dtype), shape_(shape), strides_(strides) {}

  /// A matrix as a tensor of rank 2.
  static TensorView of(MatView<float> m) { return {m.data(), DType::f32, {m.rows(), m.cols()}, {m.stride(), 1, 0, 0}}; }

  void* data() const { return data_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  size_t stride(size_t axis) const { return strides_[axis]; }
  bool is_contiguous() const;

  /// Rows [begin, end) of the first axis. @pre it has them
  TensorView rows(size_t begin, size_t end) const;

  /// The elements as T. @pre dtype() is T's.
  template <typename T>
  T* as() const {
    assert(dtype_of<T>() == dtype_);
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  DType dtype_ = DType::f32;
  Shape shape_;
  std::array<size_t, Shape::kMaxRank> strides_{};
};

/// Owns its elements, zeroed, 64-byte aligned, contiguous. Move-only.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, const Shape& shape);

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  size_t elements() const { return shape_.elements(); }
  size_t bytes() const { return elements() * size_of(dtype_); }
  bool empty() const { return data_ == nullptr; }

  template <typename T>
  T* as() const {
    assert(dtype_of<T>() == dtype_);
    return reinterpret_cast<T*>(data_.get());
  }
  std::byte* data() const { return data_.get(); }
  TensorView view() const { return {data_.get(), dtype_, shape_}; }
  /// The elements as rows of the first axis. @pre f32, not empty
  MatView<float> matrix() const { return {as<float>(), shape_[0], elements() / shape_[0]}; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte[], Free> data_;
  Shape shape_;
  DType dtype_ = DType::f32;
};

/// Copies element by element. @pre both have the same shape and type, and share no memory
void copy_elements(const TensorView& from, const TensorView& to);

/// The elements of a view, in an order without gaps.
Tensor copy_of(const TensorView& view);

}  // namespace kilin
