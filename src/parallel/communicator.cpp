#include "parallel/communicator.h"

namespace kilin {

Communicator::~Communicator() = default;

}  // namespace kilin
