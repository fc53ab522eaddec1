#include "base/result.h"

#include <cerrno>

#include <gtest/gtest.h>

namespace ceems {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) {
    return fail(ErrorCode::kInvalidArgument, "expected an even number, got {}", n);
  }
  return n / 2;
}

TEST(Result, CarriesTheValue) {
  EXPECT_EQ(half(8).value(), 4);
}

TEST(Result, CarriesTheErrorWithContextReadingOutsideIn) {
  auto result = half(3);
  ASSERT_FALSE(result);
  const Error error = std::move(result).error().with_context("halving");
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message, "halving: expected an even number, got 3");
}

TEST(Error, MapsErrnoToAClosedSetOfCodes) {
  const Error error = errno_error(EACCES, "open /proc/1/environ");
  EXPECT_EQ(error.code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(error.message, "open /proc/1/environ: Permission denied");
  EXPECT_EQ(errno_error(ENOENT, "x").code, ErrorCode::kNotFound);
  EXPECT_EQ(errno_error(EADDRINUSE, "x").code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace ceems
