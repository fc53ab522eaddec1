#include "api/documentation/openapi_words.h"

#include <array>

#include "api/documentation/openapi.h"
#include "api/paging.h"

namespace ceems::api {
namespace {

constexpr std::array kHeaders = {
    HeaderWords{"Access-Control-Allow-Headers", "Headers that other origins may send.",
                "Accept, Authorization, Content-Type, Origin, X-Grafana-User"},
    HeaderWords{"Access-Control-Allow-Methods", "Methods that other origins may use.", "GET"},
    HeaderWords{"Access-Control-Allow-Origin",
                "The origin of the request, where `--web.cors.origin` allows it.",
                "https://grafana.example"},
    HeaderWords{"Access-Control-Expose-Headers", "Headers that other origins may read.", "Date"},
    HeaderWords{"Cache-Control",
                "Answers are for one caller: caches that people share keep none, others ask each "
                "time.",
                "private, no-cache"},
    HeaderWords{"Content-Encoding", "Compression, with `--web.compression`: gzip, deflate or zstd.",
                "gzip"},
    HeaderWords{"Content-Security-Policy", "Of pages: nothing from elsewhere, nothing inline.",
                "default-src 'none'"},
    HeaderWords{"ETag",
                "Weak tag of the answer; with `If-None-Match` the same answer is not sent again.",
                "W/\"q8Zr0dVxN1mYb3h4T6u9KcEa\""},
    HeaderWords{"Expires", "End of the life of an answer that was kept (usage/current).",
                "Sat, 05 Apr 2031 08:15:00 GMT"},
    HeaderWords{"Link", "Where there is a next page: `<?...>; rel=\"next\"`, relative (RFC 8288).",
                "<?limit=100&cursor=AbCd>; rel=\"next\""},
    HeaderWords{"Location", "Where to go on after a form, or to log in at the provider.", "/ui/"},
    HeaderWords{"Referrer-Policy", "Of pages: where they are is told to nobody.", "no-referrer"},
    HeaderWords{"Retry-After", "Seconds to wait before the next request.", "60"},
    HeaderWords{"Set-Cookie", "Where people log in to this server: their session, renewed.",
                "ceems_session=...; Path=/; HttpOnly; SameSite=Lax"},
    HeaderWords{"Vary", "What the answer depends on beside the URL.", "Origin"},
    HeaderWords{"X-Ceems-Verified",
                "`each`: every id was judged by itself; load balancers ask servers that do not say "
                "so for one id at a time.",
                "each"},
    HeaderWords{"X-Content-Type-Options", "The type is as told.", "nosniff"},
    HeaderWords{"X-Ratelimit-Limit", "With `--web.max-requests`: requests a minute of one client.",
                "600"},
    HeaderWords{"X-Ratelimit-Remaining", "With `--web.max-requests`: how many are left.", "599"},
    HeaderWords{"X-Ratelimit-Reset",
                "With `--web.max-requests`: end of this minute, seconds since 1970.", "1933128480"},
};

constexpr std::array kTags = {
    TagWords{"units", "Jobs, virtual machines and pods."},
    TagWords{"usage", "Sums over units."},
    TagWords{"users", "Users and their projects."},
    TagWords{"projects", "Projects and their members."},
    TagWords{"clusters", "Clusters."},
    TagWords{"stats", "Counts."},
    TagWords{"whoami", "The caller."},
    TagWords{"demo", "Invented data; no user is needed."},
    TagWords{"login", "Pages to log in and out, where the server has them."},
    TagWords{"server", "The server itself; no user is needed."},
};

}  // namespace

std::span<const HeaderWords> all_headers() {
  return kHeaders;
}

std::string_view tag_of_path(std::string_view path) {
  return path.substr(0, path.find('/'));
}

std::span<const TagWords> all_tags() {
  return kTags;
}

std::string example_cursor(const Route& route) {
  return cursor_text(route.path, std::vector<std::string>(route.page_key, "hpc-a"));
}

std::vector<const ParamInfo*> params_of(const Route& route) {
  std::vector<const ParamInfo*> taken;
  for (const ParamInfo& info : all_params()) {
    if (route.params.contains(info.param)) {
      taken.push_back(&info);
    }
  }
  return taken;
}

bool is_required(const Route& route, Param param) {
  if (param == Param::kUuid) {
    return route.shape == Shape::kNothing || route.shape == Shape::kSeries;
  }
  return param == Param::kClusterId && route.shape == Shape::kSeries;
}

std::string server_root(const DocumentOptions& options) {
  std::string root = options.external_url;
  while (root.ends_with('/')) {
    root.pop_back();
  }
  const std::size_t host = root.find("://");
  // An external URL with a path says all; without one the prefix comes behind the host.
  const bool has_path = host != std::string::npos && root.find('/', host + 3) != std::string::npos;
  return has_path ? root : root + options.route_prefix;
}

}  // namespace ceems::api
