#include "testing/temp_dir.h"

#include <stdlib.h>

#include <fstream>
#include <string>
#include <system_error>

#include "base/check.h"

namespace ceems::testing {

TempDir::TempDir() {
  std::string name = (std::filesystem::temp_directory_path() / "ceems-test-XXXXXX").string();
  CEEMS_CHECK(::mkdtemp(name.data()) != nullptr);
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
  std::ofstream out(full, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  CEEMS_CHECK(out.good());
  return full;
}

}  // namespace ceems::testing
