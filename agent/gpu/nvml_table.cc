#include "agent/gpu/nvml_table.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "agent/process/unique_fd.h"
#include "rendezvous/base/text.h"

namespace ddprun {
namespace {

constexpr std::string_view kLibraryName = "libnvidia-ml.so.1";

// Folders that are not always in the dynamic linker's cache: distributions, the GPU operator's
// driver container, Windows' Linux subsystem.
constexpr std::array<std::string_view, 5> kFolders = {
    "/usr/lib64/", "/usr/lib/x86_64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/",
    "/run/nvidia/driver/usr/lib64/", "/usr/lib/wsl/lib/"};

// ld.so's built-in search path, which needs no entry in its cache (ld.so(8)).
constexpr std::array<std::string_view, 4> kDefaultFolders = {"/lib/", "/usr/lib/", "/lib64/",
                                                             "/usr/lib64/"};

template <typename Function>
void LookUp(void* library, const char* symbol, Function*& function) {
  if (function == nullptr) {
    function = reinterpret_cast<Function*>(::dlsym(library, symbol));
  }
}

NvmlTable FillTable(void* library) {
  NvmlTable table;
  LookUp(library, "nvmlInit_v2", table.init);
  LookUp(library, "nvmlInitWithFlags", table.init_with_flags);
  LookUp(library, "nvmlSystemGetDriverVersion", table.driver_version);
  LookUp(library, "nvmlSystemGetCudaDriverVersion_v2", table.cuda_version);
  LookUp(library, "nvmlDeviceGetCount_v2", table.count);
  LookUp(library, "nvmlDeviceGetHandleByIndex_v2", table.handle_by_index);
  LookUp(library, "nvmlDeviceGetPciInfo_v3", table.pci_info);
  LookUp(library, "nvmlDeviceGetPciInfo_v2", table.pci_info);
  LookUp(library, "nvmlDeviceGetUUID", table.uuid);
  LookUp(library, "nvmlDeviceGetName", table.name);
  LookUp(library, "nvmlDeviceGetMemoryInfo", table.memory_info);
  LookUp(library, "nvmlDeviceGetMigMode", table.mig_mode);
  LookUp(library, "nvmlDeviceGetMaxMigDeviceCount", table.max_mig_count);
  LookUp(library, "nvmlDeviceGetMigDeviceHandleByIndex", table.mig_handle);
  LookUp(library, "nvmlDeviceGetGpuInstanceId", table.gpu_instance_id);
  LookUp(library, "nvmlDeviceGetComputeInstanceId", table.compute_instance_id);
  return table;
}

bool Exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

// The cache holds the names of its libraries as plain zero-terminated strings (ldconfig(8)).
bool InLinkerCache(std::string_view name) {
  const UniqueFd fd(::open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0 || status.st_size <= 0) {
    return false;
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (bytes == MAP_FAILED) {
    return false;
  }
  const bool found = ::memmem(bytes, size, name.data(), name.size()) != nullptr;
  ::munmap(bytes, size);
  return found;
}

bool InSearchPath(const std::string& name) {
  const char* variable = std::getenv("LD_LIBRARY_PATH");
  std::string folders = variable == nullptr ? "" : variable;
  std::replace(folders.begin(), folders.end(), ';', ':');  // ld.so(8) takes both.
  for (const std::string& folder : Split(folders, ':')) {
    if (Exists(folder.empty() ? "./" + name : folder + "/" + name) && variable != nullptr) {
      return true;
    }
  }
  return std::any_of(kDefaultFolders.begin(), kDefaultFolders.end(),
                     [&](std::string_view folder) { return Exists(std::string(folder) + name); }) ||
         InLinkerCache(name);
}

}  // namespace

std::vector<std::string> NvmlLibraryPaths() {
  std::vector<std::string> paths = {std::string(kLibraryName)};
  for (const std::string_view folder : kFolders) {
    paths.push_back(std::string(folder) + std::string(kLibraryName));
  }
  return paths;
}

Expected<NvmlTable> LoadNvml(const std::vector<std::string>& paths) {
  std::string first_problem;
  for (const std::string& path : paths) {
    if (void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      return FillTable(library);
    }
    const char* problem = ::dlerror();
    // A file that is there and does not load says more than one that is not there.
    if (problem != nullptr && (first_problem.empty() || Exists(path))) {
      first_problem = problem;
    }
  }
  return Fail(ErrorCode::kNotFound, "load NVML: " + first_problem);
}

bool NvmlSeemsInstalled(const std::vector<std::string>& paths) {
  return std::any_of(paths.begin(), paths.end(), [](const std::string& path) {
    return path.find('/') == std::string::npos ? InSearchPath(path) : Exists(path);
  });
}

}  // namespace ddprun
