#pragma once

// A folder of its own for one test, removed with all it holds.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace ddprun {

class TempDir {
 public:
  TempDir() {
    std::string pattern = std::filesystem::temp_directory_path() / "ddprun_test_XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string Path(const std::string& name) const { return path_ + "/" + name; }

  // Writes a file, with the folders above it.
  std::string Write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(Path(name)).parent_path());
    std::ofstream(Path(name), std::ios::binary) << content;
    return Path(name);
  }

  std::string Read(const std::string& name) const {
    std::ifstream in(Path(name), std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }

  std::size_t EntryCount() const {
    std::size_t count = 0;
    for (auto entry = std::filesystem::directory_iterator(path_);
         entry != std::filesystem::directory_iterator(); ++entry) {
      ++count;
    }
    return count;
  }

 private:
  std::string path_;
};

}  // namespace ddprun
