#include "directories.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>

#include "base/strings.h"

namespace ceems::api {
namespace {

namespace fs = std::filesystem;

struct Owner {
  uid_t uid = 0;
  gid_t gid = 0;
};

std::optional<Owner> find_owner(const std::string& user) {
  constexpr std::size_t kBuffer = 16384;
  std::array<char, kBuffer> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) {
    const auto uid = parse_int<uid_t>(user);
    if (!uid || ::getpwuid_r(*uid, &entry, buffer.data(), buffer.size(), &found) != 0 ||
        found == nullptr) {
      return std::nullopt;
    }
  }
  return Owner{entry.pw_uid, entry.pw_gid};
}

bool contains_only_our_files(const fs::path& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (!entry.path().filename().string().starts_with("ceems") || !entry.is_regular_file(error) ||
        entry.is_symlink(error)) {
      return false;
    }
  }
  return !error;
}

Result<> give_to(const fs::path& directory, const Owner& owner) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (::lchown(entry.path().c_str(), owner.uid, owner.gid) != 0) {
      return fail(errno_error(errno, "changing the owner of " + entry.path().string()));
    }
  }
  if (::lchown(directory.c_str(), owner.uid, owner.gid) != 0) {
    return fail(errno_error(errno, "changing the owner of " + directory.string()));
  }
  return {};
}

/// Makes all missing directories of the path, from the top down.
Result<> make_all(const fs::path& path) {
  constexpr mode_t kMode = 0750;
  fs::path built;
  for (const fs::path& part : path) {
    built /= part;
    if (::mkdir(built.c_str(), kMode) != 0 && errno != EEXIST) {
      std::error_code ignored;
      if (!fs::is_directory(built, ignored)) {
        return fail(errno_error(errno, "creating directory " + built.string()));
      }
    }
  }
  return {};
}

}  // namespace

Result<std::string> prepare_directory(const std::string& path, const std::string& user) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error).lexically_normal();
  if (error) {
    return fail(errno_error(error.value(), path));
  }
  struct stat info{};
  const bool existed = ::stat(absolute.c_str(), &info) == 0;
  if (existed && !S_ISDIR(info.st_mode)) {
    return fail(ErrorCode::kInvalidArgument, "{} is not a directory", absolute.string());
  }
  if (!existed) {
    CEEMS_TRY(make_all(absolute));
  }
  if (::geteuid() == 0 && (!existed || (info.st_uid == 0 && contains_only_our_files(absolute)))) {
    if (const auto owner = find_owner(user); owner && owner->uid != 0) {
      CEEMS_TRY(give_to(absolute, *owner));
    }
  }
  return absolute.string();
}

}  // namespace ceems::api
