#include "core/error.h"

#include <cerrno>
#include <system_error>

namespace kilin {

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return "invalid_argument";
    case ErrorCode::NotFound:
      return "not_found";
    case ErrorCode::Corrupt:
      return "corrupt";
    case ErrorCode::Unsupported:
      return "unsupported";
    case ErrorCode::NotImplemented:
      return "not_implemented";
    case ErrorCode::ResourceExhausted:
      return "resource_exhausted";
    case ErrorCode::Io:
      return "io";
  }
  return "unknown";
}

void raise_errno(const std::string& what) {
  const int code = errno;
  const ErrorCode kind = code == ENOENT ? ErrorCode::NotFound : ErrorCode::Io;
  throw Error(kind, what + ": " + std::generic_category().message(code));
}

}  // namespace kilin
