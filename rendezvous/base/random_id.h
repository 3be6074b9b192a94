#pragma once

// Identifiers that must not repeat between jobs. They come from the kernel's generator
// (getrandom(2)), never from a seed: nothing that decides may depend on them.

#include <cstddef>
#include <string>

namespace ddprun {

// `length` characters out of [a-z0-9_], as Python's tempfile module uses for its names.
std::string RandomSuffix(std::size_t length = 8);

// A random (version 4) UUID in canonical text form, RFC 4122.
std::string RandomUuid4();

}  // namespace ddprun
