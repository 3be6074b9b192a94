#pragma once

// Errors as values. A function that can fail in an expected way returns Expected<T>; each caller
// may add what it was doing, so that the whole reads as one lower-case sentence. No exception of
// ours is ever thrown.

#include <string>
#include <string_view>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>

namespace ddprun {

// The vocabulary of gRPC status codes (same names, same numbers), so that no edge needs a
// translation table.
enum class ErrorCode {
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

struct [[nodiscard]] Error {
  ErrorCode code = ErrorCode::kUnknown;
  std::string message;    // One sentence without a final stop: "open '/x': permission denied".
  std::error_code cause;  // The errno behind it, if there was one.
};

template <typename T>
using Expected = tl::expected<T, Error>;

// Makes the failed half of an Expected.
tl::unexpected<Error> Fail(ErrorCode code, std::string message);

// For a failed system call: maps the errno value to a code, keeps it as the cause and appends its
// text. Read errno before formatting `doing`, which may change it.
tl::unexpected<Error> Fail(int errno_value, std::string_view doing);

// Passes an error up with what the caller was doing in front: "<doing>: <message>".
tl::unexpected<Error> FailIn(std::string_view doing, Error error);

// The text of an errno value, lower case: "permission denied".
std::string ErrnoText(int errno_value);

}  // namespace ddprun
