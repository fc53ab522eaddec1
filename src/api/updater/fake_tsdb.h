#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "testing/fake_clock.h"
#include "tsdb/fake_transport.h"

namespace ceems::api {

/// A small TSDB for tests. It understands range selectors, `function(selector[range])` for
/// max_over_time, last_over_time, avg_over_time, and /series; every other query has an empty
/// answer. Only samples scraped before `now_ms` are there, which is how late samples are played.
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
    const std::scoped_lock lock(mutex_);
    return queries_;
  }

  std::vector<Series> series;
  std::int64_t now_ms = std::int64_t{1} << 60;
  std::string scrape_interval = "15s";
  std::vector<std::string> deletions;
  /// Answers a request before anything else does, when it gives something.
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

  /// metric{a=~"x",b!="y"}[15s]; false for anything else.
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

  static bool matches(const Series& series, const Selection& selection) {
    if (!selection.metric.empty() && series.labels.at("__name__") != selection.metric) {
      return false;
    }
    return std::ranges::all_of(selection.matchers, [&series](const auto& matcher) {
      const auto found = series.labels.find(matcher[0]);
      const std::string value = found == series.labels.end() ? "" : found->second;
      const bool regex = matcher[1].ends_with('~');
      const bool equal =
          regex ? std::regex_match(value, std::regex(matcher[2])) : value == matcher[2];
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

  std::string query(std::string text, std::int64_t time_ms) {
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
    const std::scoped_lock lock(mutex_);
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
      return FakeTransport::ok(
          query(request.first("query"), std::llround(std::stold(request.first("time")) * 1000)));
    }
    return FakeTransport::ok(R"({"status":"success","data":{}})");
  }

  mutable std::mutex mutex_;
  std::vector<std::string> queries_;
};

}  // namespace ceems::api
