#include "model/exec_context.h"

#include "core/error.h"

namespace kilin {

std::string_view to_string(ActivationType type) { return type == ActivationType::f32 ? "f32" : "bf16"; }

ActivationType parse_activation_type(std::string_view name) {
  for (ActivationType type : {ActivationType::f32, ActivationType::bf16})
    if (name == to_string(type)) return type;
  raise(ErrorCode::InvalidArgument, "activations '{}' is not known; f32 and bf16 are", name);
}

}  // namespace kilin
