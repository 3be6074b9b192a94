#pragma once

// What a worker's argv[0] stands for, and why it could not be started. Looks at the file system,
// any thread.

#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

// The paths that execvp(3) would try with this environment: the name itself if it holds a slash,
// else one per folder of the *worker's* PATH ("/bin:/usr/bin" when it has none, an empty element
// means the working directory).
std::vector<std::string> ExecCandidates(const std::string& name,
                                        const std::vector<std::string>& environment);

// What to say in brackets after the errno's text when exec(2) of `path` failed: what is wrong with
// the file and the way out. Empty when there is nothing to add.
std::string ExplainExecFailure(const std::string& path, int errno_value, bool searched);

}  // namespace ddprun
