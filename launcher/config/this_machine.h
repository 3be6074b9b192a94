#pragma once

// "Is this host me?", answered by the machine's own addresses before its name (DESIGN section 4).

#include <string>

namespace ddprun {

// `localhost` and numeric loopback addresses; asks nobody.
bool IsLoopbackHost(const std::string& host);

// The above, the host name, an address of one of the interfaces, or a name that resolves to one of
// these. Only the last asks the resolver, which may block for seconds when name service is broken.
bool NamesThisMachine(const std::string& host);

}  // namespace ddprun
