#include "base/result.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <cerrno>
#include <map>
#include <memory>
#include <string>

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

Result<> check_even(int n) {
  CEEMS_TRY(half(n));
  return {};
}

Result<int> quarter(int n) {
  CEEMS_TRY(check_even(n));
  CEEMS_TRY(first, half(n));
  CEEMS_TRY(second, half(first));
  return second;
}

TEST(Try, GoesOnWithTheValue) {
  EXPECT_EQ(quarter(8).value(), 2);
}

TEST(Try, ReturnsTheErrorUnchanged) {
  const auto result = quarter(6);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(result.error().message, "expected an even number, got 3");
  EXPECT_FALSE(quarter(3));
}

Result<int> halved_twice(int n, int& contexts) {
  const auto context = [&] { return fmt::format("context {}", ++contexts); };
  CEEMS_TRY_IN(context(), half(n));
  CEEMS_TRY_IN(context(), once, half(n));
  CEEMS_TRY_IN("the second time", twice, half(once));
  return twice;
}

TEST(Try, MakesAContextOnlyForAnError) {
  int contexts = 0;
  EXPECT_EQ(halved_twice(8, contexts).value(), 2);
  EXPECT_EQ(halved_twice(6, contexts).error().message,
            "the second time: expected an even number, got 3");
  EXPECT_EQ(contexts, 0);
  EXPECT_EQ(halved_twice(3, contexts).error().message, "context 1: expected an even number, got 3");
}

Result<std::unique_ptr<int>> boxed(int n) {
  CEEMS_TRY(value, half(n));
  return std::make_unique<int>(value);
}

Result<std::unique_ptr<int>> boxed_again(int n) {
  CEEMS_TRY(box, boxed(n));
  *box += 1;
  return box;
}

TEST(Try, MovesAValueThatCannotBeCopied) {
  EXPECT_EQ(**boxed_again(8), 5);
  EXPECT_FALSE(boxed_again(7));
}

template <typename Key, typename Value>
Result<std::map<Key, Value>> one_pair(Key key, Value value) {
  return std::map<Key, Value>{{key, value}};
}

Result<int> with_commas(int n) {
  CEEMS_TRY((one_pair<int, int>(n, 1)));
  CEEMS_TRY(pairs, one_pair<std::string, int>("a", n));
  const auto add = [](int a, int b) -> Result<int> {
    CEEMS_TRY(left, half(a));
    CEEMS_TRY(right, half(b));  // NOLINT: two on a line
    return left + right;
  };
  CEEMS_TRY(sum, [&, extra = 2]() -> Result<int> {
    CEEMS_TRY(inner, add(pairs.at("a"), extra));
    return inner;
  }());
  return sum;
}

TEST(Try, TakesExpressionsWithCommasAndLambdas) {
  EXPECT_EQ(with_commas(8).value(), 5);
  EXPECT_FALSE(with_commas(7));
}

TEST(Error, MapsErrnoToAClosedSetOfCodes) {
  const Error error = errno_error(EACCES, "open /proc/1/environ");
  EXPECT_EQ(error.code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(error.message, "open /proc/1/environ: Permission denied");
  EXPECT_EQ(errno_error(ENOENT, "x").code, ErrorCode::kNotFound);
  EXPECT_EQ(errno_error(EADDRINUSE, "x").code, ErrorCode::kUnavailable);
}

TEST(Error, IsToldWhileNoFileCanBeOpened) {
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  const rlimit none{0, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const int opened = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const Error error = errno_error(errno, "open /dev/null");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_EQ(opened, -1);
  EXPECT_EQ(error.code, ErrorCode::kInternal);
  EXPECT_EQ(error.message, "open /dev/null: Too many open files");
  EXPECT_EQ(errno_error(9999, "x").message, "x: Unknown error 9999");
}

}  // namespace
}  // namespace ceems
