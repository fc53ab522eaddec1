#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/result.h"

namespace ceems::exporter::gpu {

/// A library that is loaded at run time, so that it is required only where it is used. Closed by
/// the destructor; pointers from symbol() are valid until then.
class SharedLibrary {
 public:
  /// Loads the first of `names` that can be loaded. Names are absolute paths, or names for the
  /// dynamic linker to look up. Symbols are bound at once and stay private. kNotFound has the
  /// linker's message for each name.
  static Result<SharedLibrary> open(std::span<const std::string> names);

  /// The name under which it was loaded.
  [[nodiscard]] const std::string& name() const { return name_; }

  /// The function of that name; null if the library does not have it. The type `Function` cannot be
  /// checked.
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
