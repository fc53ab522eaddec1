#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/mutex.h"
#include "testing/fake_clock.h"
#include "tsdb/fake_transport.h"

namespace ceems::ingest {

/// A small TSDB for tests. It understands range selectors, `function(selector[range])` for
/// max_over_time, last_over_time and avg_over_time, the subqueries of the default queries (both
/// ends of a range included, as in Prometheus 2), the queries for emission factors, and /series.
/// The answer to any other query is empty. Only samples scraped before `now_ms` are visible, so
/// tests can let samples arrive late.
class FakeTsdb {
 public:
  struct Series {
    std::map<std::string, std::string> labels;  ///< with __name__
    std::vector<tsdb::Sample> samples;
  };

  void add(const std::string& name,
           std::map<std::string, std::string> labels,
           std::vector<tsdb::Sample> samples) {
    labels["__name__"] = name;
    series.push_back({.labels = std::move(labels), .samples = std::move(samples)});
  }

  std::unique_ptr<tsdb::Client> client() {
    return std::make_unique<tsdb::Client>(
        "http://tsdb",
        std::make_unique<tsdb::FakeTransport>([this](const auto& r) { return serve(r); }), clock);
  }

  std::vector<std::string> queries_asked() const {
    const MutexLock lock(mutex_);
    return queries_;
  }

  std::vector<Series> series;
  std::int64_t now_ms = std::int64_t{1} << 60;
  std::string scrape_interval = "15s";
  std::int64_t evaluation_ms = 60'000;
  std::vector<std::string> deletions;
  /// If it returns an answer, that is used instead of the TSDB's.
  std::function<std::optional<Result<net::ClientResponse>>(
      const tsdb::FakeTransport::Request& request)>
      override_answer;
  testing::FakeClock clock;

 private:
  struct Selection {
    std::string metric;
    std::vector<std::array<std::string, 3>> matchers;  // name, operator, value
    std::int64_t range_ms = 0;
  };

  static std::string unquote(const std::string& text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\\' && i + 1 < text.size()) {
        ++i;
      }
      out += text[i];
    }
    return out;
  }

  /// Parses metric{a=~"x",b!="y"}[15s]; returns false for anything else.
  static bool parse(const std::string& text, Selection& selection) {
    static const std::regex kSelector(R"re(([\w:]*)\{(.*)\}(?:\[(\d+)(ms|s)\])?)re");
    static const std::regex kMatcher(R"re((\w+)(=~|!~|!=|=)"((?:[^"\\]|\\.)*)",?)re");
    std::smatch match;
    if (!std::regex_match(text, match, kSelector)) {
      static const std::regex kBare(R"re(([\w:]+)\[(\d+)(ms|s)\])re");
      if (!std::regex_match(text, match, kBare)) {
        return false;
      }
      selection.metric = match[1];
      selection.range_ms = std::stoll(match[2]) * (match[3] == "s" ? 1000 : 1);
      return true;
    }
    selection.metric = match[1];
    selection.range_ms = match[3].matched ? std::stoll(match[3]) * (match[4] == "s" ? 1000 : 1) : 0;
    const std::string body = match[2];
    for (std::sregex_iterator it(body.begin(), body.end(), kMatcher), end; it != end; ++it) {
      selection.matchers.push_back({(*it)[1], (*it)[2], unquote((*it)[3])});
    }
    return true;
  }

  static const std::regex& compiled(const std::string& pattern) {
    thread_local std::map<std::string, std::regex> known;
    const auto found = known.find(pattern);
    return found != known.end() ? found->second : known.emplace(pattern, pattern).first->second;
  }

  static bool matches(const Series& series, const Selection& selection) {
    if (!selection.metric.empty() && series.labels.at("__name__") != selection.metric) {
      return false;
    }
    return std::ranges::all_of(selection.matchers, [&series](const auto& matcher) {
      const auto found = series.labels.find(matcher[0]);
      const std::string value = found == series.labels.end() ? "" : found->second;
      const bool regex = matcher[1].ends_with('~');
      const bool equal =
          regex ? std::regex_match(value, compiled(matcher[2])) : value == matcher[2];
      return matcher[1].starts_with('!') ? !equal : equal;
    });
  }

  static std::string json_labels(const Series& series, bool with_name) {
    std::string text;
    for (const auto& [name, value] : series.labels) {
      if (name != "__name__" || with_name) {
        text += fmt::format("{}\"{}\":\"{}\"", text.empty() ? "" : ",", name, value);
      }
    }
    return "{" + text + "}";
  }

  static std::string json_sample(const tsdb::Sample& sample) {
    return fmt::format("[{}.{:03},\"{}\"]", sample.time_ms / 1000, sample.time_ms % 1000,
                       sample.value);
  }

  /// Returns the value of an instant selector.
  std::optional<double> instant(const Series& one, std::int64_t time_ms, std::int64_t lookback_ms) {
    std::optional<double> value;
    for (const auto& sample : one.samples) {
      if (sample.time_ms > time_ms - lookback_ms && sample.time_ms <= time_ms &&
          sample.time_ms <= now_ms) {
        value = sample.value;
      }
    }
    return value;
  }

  /// Answers avg_over_time(avg by (uuid) (SELECTOR >= 0 < inf)[R:]) and sum_over_time(sum ...[R:S])
  /// * A / B.
  std::optional<std::string> subquery(const std::string& text,
                                      std::int64_t time_ms,
                                      std::int64_t lookback_ms) {
    static const std::regex kForm(
        R"re((avg|sum)_over_time\((?:avg|sum) by \(uuid\) \((.*) >= 0 < inf\)\[([^:]*):([^\]]*)\]\)(?: \* (\S+) / (\S+))?)re");
    std::smatch match;
    Selection selection;
    if (!std::regex_match(text, match, kForm) || !parse(match[2], selection)) {
      return std::nullopt;
    }
    const auto milliseconds = [](const std::string& duration) {
      const auto value = tsdb::parse_duration(duration);
      return value ? value->count() : 0;
    };
    const std::int64_t range = milliseconds(match[3]);
    const std::int64_t step = match[4].length() > 0 ? milliseconds(match[4]) : evaluation_ms;
    std::string result;
    for (const auto& one : series) {
      if (!matches(one, selection)) {
        continue;
      }
      double sum = 0;
      int count = 0;
      for (std::int64_t at = (time_ms - range + step - 1) / step * step; at <= time_ms;
           at += step) {
        if (const auto value = instant(one, at, lookback_ms)) {
          sum += *value;
          ++count;
        }
      }
      if (count == 0) {
        continue;
      }
      double value = match[1] == "avg" ? sum / count : sum;
      if (match[5].matched) {
        value = value * std::stod(match[5]) / std::stod(match[6]);
      }
      result +=
          fmt::format(R"({}{{"metric":{{"uuid":"{}"}},"value":{}}})", result.empty() ? "" : ",",
                      one.labels.at("uuid"), json_sample({.time_ms = time_ms, .value = value}));
    }
    return R"({"status":"success","data":{"resultType":"vector","result":[)" + result + "]}}";
  }

  /// Answers avg(SELECTOR > 0 < inf) for a range of steps.
  std::string query_range(const tsdb::FakeTransport::Request& request) {
    const std::string text = request.first("query");
    constexpr std::string_view kBegin = "avg(";
    constexpr std::string_view kEnd = " > 0 < inf)";
    Selection selection;
    std::string values;
    if (text.starts_with(kBegin) && text.ends_with(kEnd) &&
        parse(text.substr(kBegin.size(), text.size() - kBegin.size() - kEnd.size()), selection)) {
      const auto ms = [&request](std::string_view name) {
        return static_cast<std::int64_t>(std::llround(std::stold(request.first(name)) * 1000));
      };
      for (std::int64_t at = ms("start"); at <= ms("end"); at += ms("step")) {
        double sum = 0;
        int count = 0;
        for (const auto& one : series) {
          const auto value = matches(one, selection) ? instant(one, at, 300'000) : std::nullopt;
          sum += value.value_or(0);
          count += value ? 1 : 0;
        }
        if (count > 0) {
          values += values.empty() ? "" : ",";
          values += json_sample({.time_ms = at, .value = sum / count});
        }
      }
    }
    return R"({"status":"success","data":{"resultType":"matrix","result":[)" +
           (values.empty() ? "" : R"({"metric":{},"values":[)" + values + "]}") + "]}}";
  }

  std::string query(std::string text, std::int64_t time_ms, std::int64_t lookback_ms) {
    if (auto answer = subquery(text, time_ms, lookback_ms)) {
      return *answer;
    }
    constexpr std::string_view kGroup = "max by (provider, country_code) (";
    if (text.starts_with(kGroup)) {
      text = text.substr(kGroup.size(), text.size() - kGroup.size() - 1);
    }
    std::string function;
    const std::size_t open = text.find('(');
    if (open != std::string::npos && text.ends_with(')')) {
      function = text.substr(0, open);
      text = text.substr(open + 1, text.size() - open - 2);
    }
    Selection selection;
    const bool known = function.empty() || function.ends_with("_over_time");
    std::string result;
    if (known && parse(text, selection) && selection.range_ms > 0) {
      for (const auto& one : series) {
        std::vector<tsdb::Sample> inside;
        for (const auto& sample : one.samples) {
          if (sample.time_ms >= time_ms - selection.range_ms && sample.time_ms <= time_ms &&
              sample.time_ms <= now_ms) {
            inside.push_back(sample);
          }
        }
        if (inside.empty() || !matches(one, selection)) {
          continue;
        }
        std::string values;
        if (function.empty()) {
          for (const auto& sample : inside) {
            values += values.empty() ? "" : ",";
            values += json_sample(sample);
          }
          values = "\"values\":[" + values + "]";
        } else {
          double value = inside.back().value;
          if (function == "max_over_time") {
            value = std::ranges::max(inside, {}, &tsdb::Sample::value).value;
          } else if (function == "avg_over_time") {
            value = 0;
            for (const auto& sample : inside) {
              value += sample.value / static_cast<double>(inside.size());
            }
          }
          values = "\"value\":" + json_sample({.time_ms = time_ms, .value = value});
        }
        result +=
            fmt::format("{}{{\"metric\":{},{}}}", result.empty() ? "" : ",",
                        json_labels(one, function.empty() || function == "last_over_time"), values);
      }
    }
    return fmt::format(R"({{"status":"success","data":{{"resultType":"{}","result":[{}]}}}})",
                       function.empty() && selection.range_ms > 0 ? "matrix" : "vector", result);
  }

  Result<net::ClientResponse> serve(const tsdb::FakeTransport::Request& request) {
    using tsdb::FakeTransport;
    const MutexLock lock(mutex_);
    if (override_answer) {
      if (auto answer = override_answer(request)) {
        return *answer;
      }
    }
    if (request.path.ends_with("/status/config")) {
      return FakeTransport::ok(fmt::format(
          R"({{"status":"success","data":{{"yaml":"global:\n  scrape_interval: {}\n"}}}})",
          scrape_interval));
    }
    if (request.path.ends_with("/delete_series")) {
      for (const auto& [name, value] : request.form) {
        deletions.push_back(name + "=" + value);
      }
      return FakeTransport::status(204, "");
    }
    if (request.path.ends_with("/series")) {
      std::string result;
      Selection selection;
      parse(request.first("match[]"), selection);
      for (const auto& one : series) {
        if (matches(one, selection)) {
          result += result.empty() ? "" : ",";
          result += json_labels(one, true);
        }
      }
      return FakeTransport::ok(R"({"status":"success","data":[)" + result + "]}");
    }
    if (request.path.ends_with("/query")) {
      queries_.push_back(request.first("query"));
      const auto lookback = tsdb::parse_duration(request.first("lookback_delta"));
      return FakeTransport::ok(query(request.first("query"),
                                     std::llround(std::stold(request.first("time")) * 1000),
                                     lookback ? lookback->count() : 300'000));
    }
    if (request.path.ends_with("/query_range")) {
      return FakeTransport::ok(query_range(request));
    }
    return FakeTransport::ok(R"({"status":"success","data":{}})");
  }

  mutable Mutex mutex_;
  std::vector<std::string> queries_ CEEMS_GUARDED_BY(mutex_);
};

}  // namespace ceems::ingest
