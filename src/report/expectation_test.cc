#include "report/expectation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ceems::report {
namespace {

TEST(Expectation, OfNothingIsNothing) {
  EXPECT_FALSE(expect({}));
  const std::vector<double> odd{std::numeric_limits<double>::quiet_NaN(), -1,
                                std::numeric_limits<double>::infinity()};
  EXPECT_FALSE(expect(odd));
}

TEST(Expectation, IsTheMedianOfTheLastTwentyRuns) {
  std::vector<double> values(20, 0);
  std::iota(values.begin(), values.end(), 1.0);
  values.resize(60, 1e9);
  EXPECT_DOUBLE_EQ(expect(values)->mid, 10.5);
  EXPECT_DOUBLE_EQ(expect(std::vector<double>{3, 1, 2})->mid, 2);
}

TEST(Expectation, IsWiderTheFewerRunsThereAre) {
  double before = std::numeric_limits<double>::infinity();
  for (const std::size_t runs : {1U, 2U, 4U, 8U}) {
    const auto range = expect(std::vector<double>(runs, 5.0));
    ASSERT_TRUE(range);
    EXPECT_DOUBLE_EQ(range->mid, 5);
    EXPECT_DOUBLE_EQ(range->high / 5, 5 / range->low);
    EXPECT_LT(range->high, before);
    before = range->high;
  }
  // Student's t with 2 degrees of freedom, of the usual spread and one run: 1.886 · 0.18 · √2.
  EXPECT_NEAR(expect(std::vector<double>{5})->high, 5 * std::exp(0.4801), 1e-3);
}

TEST(Expectation, OfTheSameValueIsThatValue) {
  const auto range = expect(std::vector<double>(30, 5.0));
  EXPECT_DOUBLE_EQ(range->low, 5);
  EXPECT_DOUBLE_EQ(range->high, 5);
}

TEST(Expectation, TakesZerosByTheirOrder) {
  const auto range = expect(std::vector<double>{0, 0, 0, 10, 20, 30, 40, 50, 60});
  EXPECT_DOUBLE_EQ(range->mid, 20);
  EXPECT_DOUBLE_EQ(range->low, 0);
  EXPECT_DOUBLE_EQ(range->high, 60);
  EXPECT_DOUBLE_EQ(expect(std::vector<double>{0})->high, 0);
  // Ranks 1.3 and 11.7 of 12.
  const auto between = expect(std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20});
  EXPECT_DOUBLE_EQ(between->low, 0.3);
  EXPECT_DOUBLE_EQ(between->high, 17);
}

TEST(Expectation, HoldsBackOnlyWhatHasEnoughBefore) {
  const std::vector<double> values(10, 1.0);
  EXPECT_EQ(hold_back(values, 5, 100).of, 5U);
  EXPECT_EQ(hold_back(values, 5, 100).held, 5U);
  EXPECT_EQ(hold_back(values, 5, 2).of, 2U);
  EXPECT_EQ(hold_back(values, 10, 100).of, 0U);
  EXPECT_EQ(hold_back({}, 0, 100).of, 0U);
}

/// Families of jobs as sites have them: a few keep to within a few percent, most vary by a tenth to
/// a quarter; some drift, as data grow; one run in forty is an outlier; and a change of the input
/// now and then begins anew.
class Families {
 public:
  explicit Families(std::uint32_t seed) : random_(seed) {}

  /// The energy of so many runs, the oldest first.
  std::vector<double> family(std::size_t runs) {
    std::lognormal_distribution<double> spreads(std::log(0.12), 0.6);
    const double spread = std::min(spreads(random_), 0.5);
    const double drift = chance(0.3) ? uniform(-0.01, 0.02) : 0;
    double level = std::exp(uniform(std::log(0.01), std::log(500)));
    std::normal_distribution<double> noise(0, spread);
    std::vector<double> values;
    for (std::size_t i = 0; i < runs; ++i) {
      level *= std::exp(drift);
      if (chance(0.01)) {
        level *= uniform(0.5, 2);
      }
      const double outlier = chance(0.025) ? uniform(0.2, 4) : 1;
      values.push_back(level * std::exp(noise(random_)) * outlier);
    }
    return values;
  }

  double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  bool chance(double share) { return uniform(0, 1) < share; }

 private:
  std::mt19937 random_;
};

/// What came of expecting jobs.
struct Outcome {
  Held held = {};
  std::vector<double> errors = {};  ///< shares of the value

  void add(const Range& range, double value) {
    ++held.of;
    held.held += value >= range.low && value <= range.high ? 1 : 0;
    errors.push_back(std::abs(range.mid / value - 1));
  }
  [[nodiscard]] double share() const {
    return static_cast<double>(held.held) / static_cast<double>(held.of);
  }
  double median_error() {
    const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
    std::nth_element(errors.begin(), middle, errors.end());
    return *middle;
  }
};

TEST(Expectation, HoldsForFourOfFiveOfFiftyThousandJobs) {
  constexpr std::size_t kJobs = 50'000;
  constexpr std::size_t kKnown = 5;
  Families families(20'261);
  Outcome all;
  Outcome few;   // 5 to 11 runs before
  Outcome many;  // 12 and more
  while (all.held.of < kJobs) {
    auto values = families.family(static_cast<std::size_t>(families.uniform(6, 80)));
    std::ranges::reverse(values);  // the newest first
    const std::span<const double> newest(values);
    for (std::size_t i = 0; i + kKnown < values.size() && all.held.of < kJobs; ++i) {
      const std::size_t before = values.size() - i - 1;
      const auto range = expect(newest.subspan(i + 1));
      ASSERT_TRUE(range);
      all.add(*range, values[i]);
      (before < 12 ? few : many).add(*range, values[i]);
    }
  }
  RecordProperty("held", std::to_string(all.share()));
  RecordProperty("held_few", std::to_string(few.share()));
  RecordProperty("held_many", std::to_string(many.share()));
  RecordProperty("median_error", std::to_string(all.median_error()));
  for (const Outcome* one : {&all, &few, &many}) {
    EXPECT_NEAR(one->share(), kHeldShare, 0.03) << one->held.of;
  }
  EXPECT_LT(all.median_error(), 0.12);
}

}  // namespace
}  // namespace ceems::report
