#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace ceems::exporter::gpu {

/// A library that is loaded while the program runs, so that nobody needs it who has no use for it.
/// Closed when the object goes away. What symbol() gives is valid that long.
class SharedLibrary {
 public:
  /// Loads the first of `names` that can be loaded: absolute paths, or names that the dynamic
  /// linker looks up. Its symbols are bound at once and stay private. kNotFound: what the linker
  /// said of each.
  static Result<SharedLibrary> open(std::span<const std::string> names);

  /// The name it was loaded by.
  [[nodiscard]] const std::string& name() const { return name_; }

  /// The function of that name; null where the library has none. `Function` is its type, which
  /// nothing can check.
  template <class Function>
  [[nodiscard]] Function* symbol(const char* name) const {
    // POSIX: the result of dlsym may be used as a pointer to a function.
    return reinterpret_cast<Function*>(address(name));
  }

 private:
  struct Close {
    void operator()(void* handle) const;
  };

  SharedLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  [[nodiscard]] void* address(const char* name) const;

  std::unique_ptr<void, Close> handle_;
  std::string name_;
};

}  // namespace ceems::exporter::gpu
