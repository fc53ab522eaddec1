#include "exporter/routes.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "base/text/template.h"
#include "base/version.h"

namespace ceems::exporter {
namespace {

constexpr std::array<std::string_view, 4> kEscapings{"allow-utf-8", "underscores", "dots",
                                                     "values"};

struct Range {
  std::string type = {};
  double weight = 1;
  std::string_view version = {};
  std::string_view escaping = "underscores";
};

Range parse_range(std::string_view text) {
  Range range;
  range.type = to_lower(trim(take_until(text, ';')));
  while (!text.empty()) {
    std::string_view value = take_until(text, ';');
    const std::string key = to_lower(trim(take_until(value, '=')));
    value = trim(value);
    if (key == "q") {
      range.weight = parse_double(value).value_or(0);
    } else if (key == "version") {
      range.version = value;
    } else if (key == "escaping" && std::ranges::find(kEscapings, value) != kEscapings.end()) {
      range.escaping = value;
    }
  }
  return range;
}

// The server stops writing 10 s after the request, so the page must be ready before that.
constexpr std::chrono::milliseconds kMaxScrape{9500};
constexpr double kMaxTimeoutSeconds = 3600;

void answer_text(net::Response& response, int status, std::string text) {
  response.status = status;
  response.set_header("Content-Type", "text/plain; charset=utf-8");
  response.set_header("X-Content-Type-Options", "nosniff");
  response.body = std::move(text);
}

std::string encode_path(std::string_view path) {
  std::string encoded;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::size_t length = std::min(path.find('/'), path.size());
    encoded.append("/").append(net::url_encode(path.substr(0, length)));
    path.remove_prefix(length);
  }
  return encoded;
}

/// The host without port, in lower case. Brackets of IPv6 addresses stay.
std::string host_name(const net::Request& request) {
  const std::string* host = net::find_header(request.headers, "Host");
  if (host == nullptr) {
    return {};
  }
  const auto colon = host->rfind(':');
  const bool port = colon != std::string::npos && host->find(']', colon) == std::string::npos;
  return to_lower(std::string_view(*host).substr(0, port ? colon : host->size()));
}

/// Counts a scrape while it is served.
class Counted {
 public:
  Counted(SelfMetrics& self, const net::Response& response) : self_(self), response_(response) {
    self_.request_started();
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { self_.request_finished(response_.status); }

 private:
  SelfMetrics& self_;
  const net::Response& response_;
};

/// Increments a counter during its lifetime.
class InFlight {
 public:
  explicit InFlight(std::atomic<long>& total) : total_(total), count_(++total) {}
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;
  ~InFlight() { --total_; }

  /// The value of the counter, this one included.
  [[nodiscard]] long count() const { return count_; }

 private:
  std::atomic<long>& total_;
  long count_;
};

}  // namespace

PageFormat choose_format(std::string_view accept) {
  Range open_metrics{.weight = 0};
  Range text{.weight = 0};
  while (!accept.empty()) {
    const Range range = parse_range(take_until(accept, ','));
    const bool known_version =
        range.version.empty() || range.version == "1.0.0" || range.version == "0.0.1";
    if (range.type == "application/openmetrics-text" && known_version &&
        range.weight > open_metrics.weight) {
      open_metrics = range;
    } else if ((range.type == "text/plain" || range.type == "text/*" || range.type == "*/*") &&
               range.weight > text.weight) {
      text = range;
    }
  }
  PageFormat format;
  if (open_metrics.weight > 0 && open_metrics.weight >= text.weight) {
    format.exposition = metrics::Exposition::kOpenMetrics;
    format.content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=";
    format.content_type += open_metrics.escaping;
  } else {
    format.content_type = "text/plain; version=0.0.4; charset=utf-8; escaping=";
    format.content_type += text.escaping;
  }
  return format;
}

std::string landing_page(std::string_view telemetry_path,
                         std::string_view targets_path,
                         bool debug_server) {
  const Version& v = version();
  return render_template(kExporterHtml, {.texts = {{"version", std::string(v.version)},
                                                   {"branch", std::string(v.branch)},
                                                   {"revision", std::string(v.revision)},
                                                   {"telemetry_path", std::string(telemetry_path)},
                                                   {"targets_path", std::string(targets_path)},
                                                   {"debug_server", debug_server ? "yes" : ""}}});
}

std::string clean_path(std::string_view path) {
  const bool directory = path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..");
  std::vector<std::string_view> kept;
  while (!path.empty()) {
    const std::string_view element = take_until(path, '/');
    if (element == "..") {
      if (!kept.empty()) {
        kept.pop_back();
      }
    } else if (!element.empty() && element != ".") {
      kept.push_back(element);
    }
  }
  std::string clean;
  for (const std::string_view element : kept) {
    clean.append("/").append(element);
  }
  if (clean.empty() || directory) {
    clean.push_back('/');
  }
  return clean;
}

std::chrono::milliseconds scrape_budget(const std::string* timeout_header) {
  const auto seconds = timeout_header != nullptr ? parse_double(*timeout_header) : std::nullopt;
  if (!seconds || !(*seconds > 0) || *seconds > kMaxTimeoutSeconds) {
    return kMaxScrape;
  }
  const std::chrono::milliseconds timeout(static_cast<long>(*seconds * 1000));
  return std::min(kMaxScrape, timeout - std::min(timeout / 10, std::chrono::milliseconds(500)));
}

Routes::Routes(RouteOptions options,
               MetricsPage& page,
               SelfMetrics& self,
               const Scraper& scraper,
               const Clock& clock,
               const AlloyTargets* targets)
    : options_(std::move(options)),
      page_(page),
      self_(self),
      scraper_(scraper),
      clock_(clock),
      targets_(targets) {
  for (std::string* path : {&options_.telemetry_path, &options_.targets_path}) {
    if (!path->starts_with('/')) {
      path->insert(0, "/");
    }
  }
}

void Routes::handle(const net::Request& request, net::Response& response) {
  const std::string clean = clean_path(request.path);
  if (clean != request.path) {
    response.status = 301;
    response.set_header("Location",
                        encode_path(clean) + (request.query.empty() ? "" : "?" + request.query));
  } else if (clean == options_.telemetry_path) {
    metrics(request, response);
  } else if (clean == "/") {
    response.set_header("Content-Type", "text/html; charset=UTF-8");
    response.body = landing_page(options_.telemetry_path,
                                 targets_ != nullptr ? options_.targets_path : std::string(),
                                 options_.debug_server);
  } else if (targets_ != nullptr && clean == options_.targets_path) {
    targets(response);
  } else if (clean == "/health") {
    answer_text(response, 200, "CEEMS Exporter is healthy");
  } else if (options_.debug_server && clean.starts_with("/debug/")) {
    debug(request, response);
  } else {
    answer_text(response, 404, "no such page\n");
  }
}

void Routes::metrics(const net::Request& request, net::Response& response) {
  const Counted counted(self_, response);
  if (options_.max_requests > 0 && self_.in_flight() > options_.max_requests) {
    answer_text(response, 503,
                fmt::format("limit of {} concurrent scrapes reached, try again later\n",
                            options_.max_requests));
    return;
  }
  const std::string* accept = net::find_header(request.headers, "Accept");
  PageFormat format = choose_format(accept != nullptr ? *accept : "");
  const auto budget =
      scrape_budget(net::find_header(request.headers, "X-Prometheus-Scrape-Timeout-Seconds"));
  const auto done = page_.get(format.exposition, clock_.steady_now() + budget, response.body);
  if (!done) {
    log::warn("scrape not answered",
              {{"client", request.remote_address}, {"err", done.error().message}});
    answer_text(response, 503, done.error().message + "\n");
    return;
  }
  response.set_header("Content-Type", std::move(format.content_type));
}

void Routes::targets(net::Response& response) {
  const InFlight counted(targets_in_flight_);
  if (options_.max_requests > 0 && counted.count() > options_.max_requests) {
    answer_text(response, 503,
                fmt::format("Limit of concurrent requests reached ({}), try again later.\n",
                            options_.max_requests));
    return;
  }
  auto document = targets_->document();
  if (!document) {
    log::error("targets not gathered", {{"err", document.error().message}});
    answer_text(response, 500,
                fmt::format("An error has occurred while gathering targets:\n\n{}\n",
                            document.error().message));
    return;
  }
  response.set_header("Content-Type", "application/json");
  response.body = *std::move(document);
}

void Routes::debug(const net::Request& request, net::Response& response) const {
  if (host_name(request) != "localhost" ||
      (request.path != "/debug/" && request.path != "/debug/pprof/")) {
    answer_text(response, 404, "no such page\n");
    return;
  }
  if (request.method != "GET") {
    response.set_header("Allow", "GET");
    answer_text(response, 405, "only GET is allowed here\n");
    return;
  }
  std::string text = "collector success milliseconds message\n";
  for (const CollectorStatus& status : scraper_.statuses()) {
    const std::chrono::duration<double, std::milli> duration = status.duration;
    text += fmt::format("{} {} {:.3f} {}\n", status.name, status.success ? 1 : 0, duration.count(),
                        printable(status.message, 1024));
  }
  answer_text(response, 200, std::move(text));
}

}  // namespace ceems::exporter
