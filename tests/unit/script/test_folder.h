#pragma once

// A folder of its own for a test, with files in it; it becomes the working directory until the end.

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "launcher/script/path_search.h"

namespace ddprun {

class TestFolder {
 public:
  TestFolder() : before_(std::filesystem::current_path()) {
    std::string name = (std::filesystem::temp_directory_path() / "ddprun-script-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
    std::filesystem::current_path(path_);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(path_);
  }

  std::string path(const std::string& name) const { return (path_ / name).string(); }

  // Makes the folders on the way, too.
  std::string Write(const std::string& name, const std::string& text, mode_t mode = 0644) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
    ::chmod(path(name).c_str(), mode);
    return path(name);
  }

  std::string Program(const std::string& name) const {
    return Write(name, "#!/bin/sh\nexit 0\n", 0755);
  }

 private:
  std::filesystem::path before_;
  std::filesystem::path path_;
};

using Variables = std::map<std::string, std::string, std::less<>>;

inline EnvironmentLookup Environment(Variables variables) {
  return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  };
}

}  // namespace ddprun
