#include "os/startup_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::os {
namespace {

/// Resident pages of mapped files in kB, as /proc/self/status tells (proc(5)).
long resident_of_files() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "RssFile:") {
      long kilobytes = 0;
      status >> kilobytes;
      return kilobytes;
    }
  }
  return -1;
}

struct Shape {
  virtual ~Shape() = default;
  [[nodiscard]] virtual int corners() const = 0;
};
struct Square : Shape {
  [[nodiscard]] int corners() const override { return 4; }
};

std::vector<std::unique_ptr<Shape>> shapes() {
  std::vector<std::unique_ptr<Shape>> all;
  all.push_back(std::make_unique<Square>());
  return all;
}

TEST(StartupPages, PagesOfFilesThatAreNotUsedAnyMoreAreNotResident) {
  const long before = resident_of_files();
  const std::size_t released = release_startup_pages();
  const long after = resident_of_files();
  ASSERT_GT(before, 0);
  EXPECT_GT(released, std::size_t{1} << 20U);
  EXPECT_LT(after, before / 2) << "of " << before << " kB";
}

TEST(StartupPages, WhatWasWrittenStays) {
  static int counter = 41;  // in a writable segment
  static const std::string kText(100, 'x');
  const auto all = shapes();  // a table of functions that linking has relocated
  ++counter;
  release_startup_pages();
  EXPECT_EQ(counter, 42);
  EXPECT_EQ(kText, std::string(100, 'x'));
  EXPECT_EQ(all.front()->corners(), 4);
  EXPECT_THROW(static_cast<void>(std::stoi("x")), std::invalid_argument);  // unwinding tables
}

/// Code that a debugger has set a break point in, or a library has patched.
TEST(StartupPages, ASegmentSomebodyHasWrittenToStays) {
  static constexpr std::array<char, 16384> kConstants = {1, 2, 3};
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(kConstants.data()) / page * page + page;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): mprotect(2) wants whole pages
  auto* const bytes = reinterpret_cast<volatile char*>(begin);
  void* const place = const_cast<char*>(bytes);
  ASSERT_EQ(bytes[100], 0);
  ASSERT_EQ(::mprotect(place, page, PROT_READ | PROT_WRITE), 0);
  bytes[100] = 7;
  ASSERT_EQ(::mprotect(place, page, PROT_READ), 0);
  release_startup_pages();
  EXPECT_EQ(bytes[100], 7);
}

}  // namespace
}  // namespace ceems::os
