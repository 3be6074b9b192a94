#include "rendezvous/base/error.h"

#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <cstring>

namespace ddprun {
namespace {

ErrorCode CodeOf(int errno_value) {
  switch (errno_value) {
    case ENOENT:
    case ESRCH:
    case ENODEV:
    case ENXIO:
      return ErrorCode::kNotFound;
    case EEXIST:
    case EADDRINUSE:
      return ErrorCode::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::kPermissionDenied;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EAGAIN:
      return ErrorCode::kResourceExhausted;
    case EINVAL:
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
      return ErrorCode::kInvalidArgument;
    case ETIMEDOUT:
      return ErrorCode::kDeadlineExceeded;
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EPIPE:
      return ErrorCode::kUnavailable;
    case ECANCELED:
    case EINTR:
      return ErrorCode::kCancelled;
    case ENOSYS:
    case EOPNOTSUPP:
      return ErrorCode::kUnimplemented;
    default:
      return ErrorCode::kUnknown;
  }
}

}  // namespace

std::string ErrnoText(int errno_value) {
  std::string text = std::generic_category().message(errno_value);
  const bool acronym = text.size() > 1 && std::isupper(static_cast<unsigned char>(text[1])) != 0;
  if (!text.empty() && !acronym) {
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  }
  return text;
}

tl::unexpected<Error> Fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message), {}});
}

tl::unexpected<Error> Fail(int errno_value, std::string_view doing) {
  return tl::unexpected<Error>(Error{CodeOf(errno_value),
                                     fmt::format("{}: {}", doing, ErrnoText(errno_value)),
                                     std::error_code(errno_value, std::generic_category())});
}

tl::unexpected<Error> FailIn(std::string_view doing, Error error) {
  error.message = fmt::format("{}: {}", doing, error.message);
  return tl::unexpected<Error>(std::move(error));
}

}  // namespace ddprun
