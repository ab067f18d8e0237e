// Takes a tensor from a weight source without a module.
#pragma once

#include "weights/weight_source.h"

namespace kilin::testing {

/// In the form in which a module would take it.
inline void take_tensor(WeightSource& source, const ExpectedTensor& tensor) {
  switch (tensor.pattern->use) {
    case WeightUse::Parameter:
      source.parameter(tensor.name);
      return;
    case WeightUse::Table:
      source.table(tensor.name);
      return;
    case WeightUse::Dense:
      source.dense(tensor.name);
      return;
    case WeightUse::ExactProduct:
    case WeightUse::Product:
    case WeightUse::SensitiveProduct:
    case WeightUse::LmHead:
      source.matrix(tensor.name);
      return;
  }
}

}  // namespace kilin::testing
