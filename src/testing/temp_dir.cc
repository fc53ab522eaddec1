#include "testing/temp_dir.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "base/fd.h"

namespace ceems::testing {

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "ceems-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), name);
  }
  path_ = name;
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TempDir::write(const std::filesystem::path& relative,
                                     std::string_view content) const {
  const std::filesystem::path full = path_ / relative;
  std::filesystem::create_directories(full.parent_path());
  // Written over and then cut. ext4 writes a file that was emptied first to the disk when it is
  // closed (the mount option auto_da_alloc), and some tests write a file ten thousand times.
  const UniqueFd file(::open(full.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  const auto size = static_cast<ssize_t>(content.size());
  if (!file.valid() || ::write(file.get(), content.data(), content.size()) != size ||
      ::ftruncate(file.get(), size) != 0) {
    throw std::system_error(errno, std::generic_category(), full.string());
  }
  return full;
}

}  // namespace ceems::testing
