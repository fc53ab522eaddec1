#include "cacct/listing.h"

#include <cstdlib>
#include <ctime>

#include <gtest/gtest.h>

namespace ceems::cacct {
namespace {

TEST(Listing, IsForTerminalsWithoutAnotherForm) {
  EXPECT_TRUE(shows_listing({}, true));
  EXPECT_FALSE(shows_listing({}, false));
  EXPECT_TRUE(shows_listing({.gpus = true}, false));
  EXPECT_TRUE(shows_listing({.totals = true, .human = true}, true));
  for (const Options& other : {Options{.format = "jobid"},
                               {.long_format = true},
                               {.csv = true},
                               {.html = true},
                               {.markdown = true},
                               {.json = true},
                               {.parsable = true}}) {
    EXPECT_FALSE(shows_listing(other, true));
  }
}

TEST(Listing, SaysWhatToTryWhenThereIsNoJob) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  constexpr std::int64_t kNow = 1'794'970'436;  // 2026-11-18 02:53:56
  constexpr std::int64_t kMidnight = kNow - 10436;
  constexpr std::int64_t kDay = 86400;
  const auto text = [](const Options& options, std::int64_t from) {
    return no_jobs_text(options,
                        {.cluster_id = {},
                         .projects = {},
                         .uuids = {},
                         .users = {},
                         .from = from,
                         .to = kNow,
                         .tags = {}},
                        kNow);
  };
  EXPECT_EQ(text({}, kMidnight), "No jobs today; try -S now-1weeks");
  EXPECT_EQ(text({.start_time = "x"}, kMidnight - kDay),
            "No jobs since 2026-11-17; try -S now-1weeks");
  EXPECT_EQ(text({.start_time = "x"}, kNow - 7 * kDay),
            "No jobs since 2026-11-11 02:53; try -S now-10weeks");
  EXPECT_EQ(text({.start_time = "x"}, kNow - 100 * kDay),
            "No jobs since 2026-08-10 02:53; try an earlier -S");
  EXPECT_EQ(text({.end_time = "x"}, kMidnight),
            "No jobs from 2026-11-18 to 2026-11-18 02:53; try -S now-1weeks");
  EXPECT_EQ(text({.accounts = {"a"}}, kMidnight), "No such jobs today; try -S now-1weeks");
  EXPECT_EQ(text({.jobs = {"7"}}, kMidnight), "No such job among those that you may see");
  for (const char* id : {"7100_4", "8200+1", "7100_[1-3]"}) {
    EXPECT_EQ(
        text({.jobs = {"7", id}}, kMidnight),
        "No such job among those that you may see; of jobs that old versions of CEEMS stored, "
        "only the JobIDRaw of sacct is known");
  }
}

}  // namespace
}  // namespace ceems::cacct
