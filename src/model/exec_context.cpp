#include "model/exec_context.h"

#include "core/error.h"

namespace kilin {

std::string_view to_string(ActivationType type) {
  switch (type) {
    case ActivationType::f32:
      return "f32";
    case ActivationType::bf16:
      return "bf16";
    case ActivationType::int8:
      return "int8";
  }
  return "?";
}

ActivationType parse_activation_type(std::string_view name) {
  for (ActivationType type : kActivationTypes)
    if (name == to_string(type)) return type;
  raise(ErrorCode::InvalidArgument, "activations '{}' is not known; f32, bf16 and int8 are", name);
}

}  // namespace kilin
