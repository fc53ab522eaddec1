#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "access/digests.h"
#include "api/request/months.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/time/time_zone.h"
#include "report/digest.h"
#include "store/facts.h"
#include "store/reader.h"

namespace ceems::api {

struct DigestQuestion {
  Month month = {};
  std::string user = {}, project = {};     ///< one of them is empty
  std::vector<std::string> clusters = {};  ///< empty: all
  access::DigestRows rows = {};            ///< of that user or project; not kNothing
  std::vector<std::string> not_said = {};  ///< rules that are left out
  std::int64_t now_ms = 0;
};

/// Makes digests of months from the database. Safe for concurrent use.
class DigestMaker {
 public:
  /// `reader` outlives the maker. `zone` is that of the days of usage.
  DigestMaker(store::Reader& reader, TimeZone zone) : reader_(reader), zone_(zone) {}

  /// A rounded digest. Usage that cannot be read is an error of the reader; what takes too long to
  /// add up beside it is absent.
  Result<report::Digest> make(const DigestQuestion& question) const;

 private:
  /// What the projects of some clusters reserved and did not use in a month, where it is known.
  struct Projects {
    struct Sum {
      double of_kwh = 0, not_used_kwh = 0;
    };
    std::int64_t until_ms = 0;  ///< when it is added up again
    std::map<std::string, Sum> sums = {};
  };

  Result<> add_usage(const DigestQuestion& question, report::Digest& digest) const;
  void add_method(const DigestQuestion& question, report::Digest& digest) const;
  void add_units(const DigestQuestion& question, report::Digest& digest) const;
  void add_suggestions(const DigestQuestion& question, report::Digest& digest) const;
  [[nodiscard]] std::optional<report::Band> band_of(const DigestQuestion& question) const;
  [[nodiscard]] Projects add_up(const DigestQuestion& question) const;

  store::Reader& reader_;
  const TimeZone zone_;
  mutable Mutex mutex_;
  mutable std::map<std::string, Projects> projects_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::api
