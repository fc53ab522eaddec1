#include "host/counter_file.h"

#include <sys/stat.h>

#include <string_view>
#include <utility>

#include "base/strings.h"
#include "host/read_file.h"

namespace ceems::host {

CounterFile::CounterFile(std::string path, Opener opener)
    : path_(std::move(path)), opener_(opener ? std::move(opener) : Opener(open_file)) {}

Result<std::uint64_t> CounterFile::read() {
  // If the file was removed, sysfs returns ENODEV, but other file systems return its old content.
  struct stat status{};
  if (fd_.valid() && (::fstat(fd_.get(), &status) != 0 || status.st_nlink == 0)) {
    fd_.reset();
  }
  if (!fd_.valid()) {
    CEEMS_TRY(opened, opener_(path_.c_str()));
    fd_ = std::move(opened);
  }
  const auto done = reread(fd_, buffer_, kMaxValueSize);
  if (!done) {
    fd_.reset();
    return fail(Error(done.error()).with_context(path_));
  }
  const std::string_view text = trim(buffer_);
  const auto value = parse_int(text);
  if (!value) {
    return fail(ErrorCode::kParse, "{}: expected a number, got '{}'", path_, printable(text));
  }
  return *value;
}

}  // namespace ceems::host
