// The digest of a month: its numbers, and its JSON.
#include "report/digest.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/json.h"
#include "report/json_members.h"
#include "report/rounding.h"
#include "report/sheet.h"

namespace ceems::report {
namespace {

void add_months(JsonWriter& json, const Digest& digest) {
  json.key("months").begin_array();
  for (const MonthOfUse& month : digest.months) {
    json.begin_object().member("month", month.month);
    json.member("core_hours", month.core_hours).member("gpu_hours", month.gpu_hours);
    add(json, "kwh", month.kwh);
    add(json, "g", month.grams);
    add(json, "units", month.units);
    add(json, "idle_share", month.idle_share);
    add(json, "not_used_share", month.not_used_share);
    json.end_object();
  }
  json.end_array();
}

void add_improvement(JsonWriter& json, const Digest& digest) {
  json.key("improvement");
  if (const auto& best = digest.improvement) {
    json.begin_object();
    add_text(json, "name", best->name);
    json.member("runs", best->runs).member("before", best->before).member("now", best->now);
    json.member("saved_kwh", best->saved_kwh).end_object();
  } else {
    json.value(nullptr);
  }
}

void add_band(JsonWriter& json, const Digest& digest) {
  json.key("band");
  if (const auto& band = digest.band) {
    json.begin_object().member("place", band->place).member("low", band->low);
    json.member("high", band->high);
    json.member("projects", static_cast<std::int64_t>(band->projects)).end_object();
  } else {
    json.value(nullptr);
  }
}

void add_suggestion(JsonWriter& json, const RepeatedFinding& one, const View& view) {
  const advice::Finding& finding = one.finding;
  json.begin_object().member("rule", finding.rule);
  json.member("severity", advice::to_string(finding.severity));
  json.member("confidence", advice::to_string(finding.confidence));
  json.member("units", one.units).member("cluster_id", one.cluster_id).member("uuid", one.uuid);
  add_advice(json, finding, view.language);
  json.end_object();
}

}  // namespace

void round_digest(Digest& digest) {
  constexpr int kDigits = 3;
  for (MonthOfUse& month : digest.months) {
    for (double* hours : {&month.core_hours, &month.gpu_hours}) {
      // Whole hours, and three digits of fewer.
      *hours = std::abs(*hours) >= 100 ? std::round(*hours) : significant(*hours, kDigits);
    }
    round_significant(month.kwh, kDigits);
    round_significant(month.grams, kDigits);
    round_share(month.idle_share);
    round_share(month.not_used_share);
  }
  round_share(digest.kwh_change);
  round_share(digest.hours_change);
  round_share(digest.modelled_share);
  if (auto& best = digest.improvement) {
    best->before = rounded_share(best->before);
    best->now = rounded_share(best->now);
    best->saved_kwh = significant(best->saved_kwh, 2);
  }
  if (auto& band = digest.band) {
    band->low = rounded_share(band->low);
    band->high = rounded_share(band->high);
  }
}

void keep_band(Digest& digest) {
  Digest band{.project = std::move(digest.project),
              .clusters = std::move(digest.clusters),
              .so_far = digest.so_far,
              .band_only = true,
              .band = std::move(digest.band)};
  if (!digest.months.empty()) {
    band.months.push_back({.month = digest.months.front().month});
  }
  digest = std::move(band);
}

std::string to_json(const Digest& digest, const View& view) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("v", 1);
  json.member("month", digest.months.empty() ? std::string() : digest.months.front().month);
  add_text(json, "user", digest.user);
  add_text(json, "project", digest.project);
  add_texts(json, "clusters", digest.clusters);
  json.member("so_far", digest.so_far).member("band_only", digest.band_only);
  if (digest.band_only) {
    json.key("months").begin_array().end_array();
  } else {
    add_months(json, digest);
  }
  add_text(json, "method", digest.method);
  add(json, "modelled_share", digest.modelled_share);
  add_texts(json, "unmeasured", digest.unmeasured);
  add(json, "kwh_change", digest.kwh_change);
  add(json, "hours_change", digest.hours_change);
  add_improvement(json, digest);
  add_band(json, digest);
  json.key("suggestions").begin_array();
  for (std::size_t i = 0; i < std::min(digest.suggestions.size(), advice::kMaxShown); ++i) {
    add_suggestion(json, digest.suggestions[i], view);
  }
  json.end_array().end_object();
  return text;
}

}  // namespace ceems::report
