#include "api/documentation/openapi_words.h"

#include <algorithm>
#include <array>

#include "api/documentation/openapi.h"
#include "api/paging.h"

namespace ceems::api {
namespace {

constexpr std::array kFields = {
    FieldWords{"cluster_id", "Id of the cluster in the configuration.", R"("hpc-a")"},
    FieldWords{"resource_manager", "Kind of the cluster: slurm, openstack, k8s, local.",
               R"("slurm")"},
    FieldWords{"uuid", "Id of the unit: job, server or pod.", R"("7001")"},
    FieldWords{"name", "Name of the unit, user or project.", R"("fluids")"},
    FieldWords{"project", "Account, tenant or namespace.", R"("fluids")"},
    FieldWords{"groupname", "Group of the user, where the manager knows one.", R"("phys")"},
    FieldWords{"username", "Owner of the unit.", R"("ada")"},
    FieldWords{"created_at", "When it was submitted, with offset.",
               R"("2031-04-05T06:07:08+0200")"},
    FieldWords{"started_at", "When it started, with offset, or the manager's word for unknown.",
               R"("2031-04-05T06:07:30+0200")"},
    FieldWords{"ended_at", "When it ended, with offset, or the manager's word for unknown.",
               R"("2031-04-05T06:08:30+0200")"},
    FieldWords{"created_at_ts", "The same in milliseconds since 1970.", "1933128428000"},
    FieldWords{"started_at_ts", "The same in milliseconds since 1970.", "1933128450000"},
    FieldWords{"ended_at_ts", "The same in milliseconds since 1970; absent while the unit runs.",
               "1933128510000"},
    FieldWords{"elapsed", "Running time, [days-]hours:minutes:seconds.", R"("00:01:00")"},
    FieldWords{"state", "State in the manager's words.", R"("COMPLETED")"},
    FieldWords{"allocation", "What was allocated, in the manager's terms.",
               R"({"cpus":4,"gpus":0,"mem":1073741824,"nodes":1})"},
    FieldWords{"total_time_seconds", "Running time, and allocated resources times running time.",
               R"({"alloc_cpumemtime":61440,"alloc_cputime":240,"walltime":60})"},
    FieldWords{"avg_cpu_usage", "CPU time used, in percent of that allocated.",
               R"({"global":41.25})"},
    FieldWords{"avg_cpu_mem_usage", "Memory used, in percent of that allocated.",
               R"({"global":12.5})"},
    FieldWords{"total_cpu_energy_usage_kwh", "Energy but that of GPUs, in kWh.",
               R"({"total":0.0732})"},
    FieldWords{"total_cpu_emissions_gms", "Emissions of that energy by source, in g CO2e.",
               R"({"rte_total":4.1})"},
    FieldWords{"avg_gpu_usage", "GPU time used, in percent of that allocated.",
               R"({"global":88.75})"},
    FieldWords{"avg_gpu_mem_usage", "GPU memory used, in percent of that allocated.",
               R"({"global":50.5})"},
    FieldWords{"total_gpu_energy_usage_kwh", "Energy of GPUs, in kWh.", R"({"total":0.15})"},
    FieldWords{"total_gpu_emissions_gms", "Emissions of that energy by source, in g CO2e.",
               R"({"rte_total":8.4})"},
    FieldWords{"total_io_write_stats", "Written: bytes, requests.",
               R"({"bytes":1048576,"requests":256})"},
    FieldWords{"total_io_read_stats", "Read: bytes, requests.",
               R"({"bytes":2097152,"requests":512})"},
    FieldWords{"total_ingress_stats", "Received: bytes, packets.",
               R"({"bytes":4096,"packets":16})"},
    FieldWords{"total_egress_stats", "Sent: bytes, packets.", R"({"bytes":8192,"packets":32})"},
    FieldWords{"num_units", "Number of units.", "9"},
    FieldWords{"num_inactive_units", "Units that have ended.", "7"},
    FieldWords{"num_active_units", "Units that have not ended.", "2"},
    FieldWords{"num_projects", "Projects with units.", "2"},
    FieldWords{"num_users", "Users with units.", "3"},
    FieldWords{"uid", "Id that the manager uses.", R"("1007")"},
    FieldWords{"projects", "Projects that have the user as a member.", R"(["fluids","optics"])"},
    FieldWords{"users", "Members of the project.", R"(["ada","lin"])"},
    FieldWords{"id", "Id of the cluster in the configuration.", R"("hpc-a")"},
    FieldWords{"manager", "Kind of the cluster.", R"("slurm")"},
};
constexpr FieldWords kTagsOfUnits{"tags", "What else the manager says.",
                                  R"({"partition":"batch","workdir":"/home/ada"})"};
constexpr FieldWords kTagsOfPeople{"tags", "What else the manager says.", R"(["ceems"])"};

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

const FieldWords* words_of(const store::Field& field) {
  if (field.name == "tags") {
    return field.kind == store::FieldKind::kList ? &kTagsOfPeople : &kTagsOfUnits;
  }
  const auto found = std::ranges::find(kFields, field.name, &FieldWords::name);
  return found == kFields.end() ? nullptr : &*found;
}

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
