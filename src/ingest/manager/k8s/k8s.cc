#include "ingest/manager/k8s/k8s.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "config/section.h"
#include "ingest/manager/k8s/access.h"
#include "ingest/manager/k8s/people.h"
#include "kube/pod_watch.h"
#include "net/client/client.h"

namespace ceems::ingest {
namespace {

using std::chrono::milliseconds;

// The end of a pod takes a moment to reach us from the node through the API server.
constexpr milliseconds kSettle{5000};
constexpr milliseconds kPatience{30'000};
constexpr milliseconds kListTimeout{30'000};
constexpr std::size_t kMaxListBytes = std::size_t{64} << 20U;
constexpr std::size_t kMaxBindings = 1'000'000;
constexpr const char* kDefaultUsersFile = "/var/run/ceems/users.yaml";

/// One of the lists of members. While it cannot be read, the last version that was read is used.
class MemberList {
 public:
  explicit MemberList(std::string name) : name_(std::move(name)) {}

  /// Returns `read`, or the last list that was read; an error if none ever was.
  Result<std::set<Membership>> take(Result<std::set<Membership>> read,
                                    const std::string& cluster_id) {
    if (read) {
      if (std::exchange(failing_, false)) {
        log::info("members are read again", {{"cluster_id", cluster_id}, {"list", name_}});
      }
      known_ = *read;
      return read;
    }
    if (!known_) {
      return fail(std::move(read).error().with_context(name_));
    }
    if (!std::exchange(failing_, true)) {
      log::warn("cannot read members, keeping the known ones",
                {{"cluster_id", cluster_id}, {"list", name_}, {"err", read.error().message}});
    }
    return *known_;
  }
  [[nodiscard]] bool had_members() const { return known_ && !known_->empty(); }

 private:
  std::string name_;
  std::optional<std::set<Membership>> known_;
  bool failing_ = false;
};

class K8sManager final : public ResourceManager {
 public:
  K8sManager(std::string cluster_id,
             K8sUnitOptions options,
             K8sSources sources,
             TimeZone zone,
             const Clock& clock,
             milliseconds patience)
      : cluster_id_(std::move(cluster_id)),
        options_(std::move(options)),
        sources_(std::move(sources)),
        zone_(zone),
        clock_(clock),
        patience_(patience) {}

  [[nodiscard]] milliseconds settle() const override { return kSettle; }

  Result<std::vector<model::Unit>> fetch_units(model::Window window,
                                               std::stop_token stop) override {
    settle_last_window(window);
    CEEMS_TRY(pods, sources_.pods->pods(patience_, stop));
    std::ranges::sort(pods, {},
                      [](const auto& stored) -> const std::string& { return stored->pod.uid; });
    read_claims(pods, stop);
    std::vector<model::Unit> units;
    std::vector<std::string> done;
    for (const auto& stored : pods) {
      const auto reported = reported_.find(stored->pod.uid);
      if (reported != reported_.end() && reported->second.ended) {
        if (stored->gone_ms > 0) {
          done.push_back(stored->pod.uid);
        }
        continue;
      }
      const std::int64_t counted_ms = reported != reported_.end() && reported->second.until_ms > 0
                                          ? reported->second.until_ms
                                          : first_ms_;
      auto unit = k8s_unit(with_claims(*stored), options_, window, counted_ms, zone_);
      if (!unit) {
        continue;
      }
      // The time of a pod that is pending or out of reach is counted by a later window.
      const bool counted = unit->ended_at_ts > 0 || stored->pod.phase != "Unknown";
      reporting_[stored->pod.uid] = {
          .until_ms = has_started(stored->pod) && counted ? window.end_ms : 0,
          .ended = unit->ended_at_ts > 0};
      members_.saw(stored->pod, options_);
      units.push_back(*std::move(unit));
    }
    forget(done);
    return units;
  }

  Result<UsersAndProjects> fetch_users_projects(model::Window /*window*/,
                                                std::stop_token stop) override {
    std::set<Membership> listed;
    if (sources_.users_file) {
      CEEMS_TRY(members, users_file_.take(read_users_file(), cluster_id_));
      listed.merge(members);
    }
    if (sources_.role_bindings) {
      CEEMS_TRY(members, bindings_.take(read_bindings(stop), cluster_id_));
      listed.merge(members);
    }
    const auto now = std::chrono::duration_cast<milliseconds>(clock_.now().time_since_epoch());
    members_.listed(listed, now.count());
    return users_and_projects(members_.all());
  }

 private:
  /// What a window reported about a pod.
  struct Reported {
    std::int64_t until_ms = 0;  ///< its time was counted up to here; 0: not at all
    bool ended = false;
  };

  /// The last window fetched was written if this one begins at its end or later. Then what it
  /// reported counts as reported; otherwise it must be reported again.
  void settle_last_window(model::Window window) {
    if (window.start_ms >= last_end_ms_) {
      for (const auto& [uid, reported] : reporting_) {
        auto& known = reported_[uid];
        known = {.until_ms = std::max(known.until_ms, reported.until_ms), .ended = reported.ended};
      }
    }
    reporting_.clear();
    last_end_ms_ = window.end_ms;
    first_ms_ = first_ms_ == 0 ? window.start_ms : std::min(first_ms_, window.start_ms);
  }

  /// Forgets pods that are gone and whose end was written.
  void forget(const std::vector<std::string>& uids) {
    for (const auto& uid : uids) {
      reported_.erase(uid);
      claimed_.erase(uid);
    }
    sources_.pods->forget(uids);
  }

  /// Notes the devices of resource claims. They do not change while a pod runs, and a claim may be
  /// gone before its pod is counted, so what was read stays.
  void read_claims(const std::vector<std::shared_ptr<const kube::StoredPod>>& pods,
                   const std::stop_token& stop) {
    const bool wanted = std::ranges::any_of(pods, [this](const auto& stored) {
      return stored->pod.has_claims && !claimed_.contains(stored->pod.uid);
    });
    if (!wanted || !sources_.resource_claims) {
      return;
    }
    const auto claims = sources_.resource_claims(stop);
    if (!claims) {
      if (!std::exchange(claims_fail_, true)) {
        log::warn(
            "cannot read resource claims, so their GPUs do not count (the service account needs "
            "list on resourceclaims.resource.k8s.io)",
            {{"cluster_id", cluster_id_}, {"err", claims.error().message}});
      }
      return;
    }
    claims_fail_ = false;
    std::unordered_map<std::string, std::map<std::string, double>> found;
    for (const auto& [uid, driver, count] : *claims) {
      found[uid][driver] += count;
    }
    for (auto& stored : pods) {
      if (const auto devices = found.find(stored->pod.uid); devices != found.end()) {
        claimed_[stored->pod.uid] = devices->second;
      }
    }
  }

  [[nodiscard]] kube::StoredPod with_claims(const kube::StoredPod& stored) const {
    kube::StoredPod whole = stored;
    if (const auto claimed = claimed_.find(stored.pod.uid); claimed != claimed_.end()) {
      for (const auto& [driver, count] : claimed->second) {
        whole.pod.limits[driver] += count;
        whole.pod.reserved[driver] += count;
      }
    }
    return whole;
  }

  Result<std::set<Membership>> read_users_file() {
    auto document = sources_.users_file();
    if (!document) {
      const bool absent = document.error().code == ErrorCode::kNotFound;
      if (absent && sources_.users_file_optional && !users_file_.had_members()) {
        return {};
      }
      return fail(std::move(document).error());
    }
    return users_of_file(*document);
  }

  Result<std::set<Membership>> read_bindings(const std::stop_token& stop) {
    CEEMS_TRY(list, sources_.role_bindings(stop));
    // Kubernetes itself creates some in every cluster, so an empty list is wrong.
    if (list.bindings == 0 && bindings_.had_members()) {
      return fail(ErrorCode::kUnavailable, "the API server lists none at all");
    }
    std::set<Membership> members;
    for (const auto& bound : list.users) {
      members.insert({.project = bound.name_space, .user = bound.user});
    }
    return members;
  }

  const std::string cluster_id_;
  const K8sUnitOptions options_;
  const K8sSources sources_;
  const TimeZone zone_;
  const Clock& clock_;
  const milliseconds patience_;

  std::unordered_map<std::string, Reported> reported_;   ///< in windows that were written
  std::unordered_map<std::string, Reported> reporting_;  ///< in the last window, written or not
  std::unordered_map<std::string, std::map<std::string, double>> claimed_;  ///< by UID and driver
  bool claims_fail_ = false;
  std::int64_t last_end_ms_ = 0;
  std::int64_t first_ms_ = 0;  ///< start of the first window of this process
  PodMembers members_;
  MemberList users_file_{"ns_users_list_file"};
  MemberList bindings_{
      "role bindings (the service account needs list on rolebindings; "
      "extra_config.role_bindings: false does without)"};
};

/// Gets all pages of a list. `read` takes the body of one and returns the token of the next.
Result<> get_pages(const kube::Connect& connect,
                   std::string_view path,
                   const std::stop_token& stop,
                   const std::function<Result<std::string>(std::string_view)>& read) {
  CEEMS_TRY(connection, connect(stop));
  connection.options.user_agent = "ceems_api_server";
  connection.options.timeout = kListTimeout;
  connection.options.max_response_bytes = kMaxListBytes;
  const std::string url = connection.server + std::string(path) + "?limit=500";
  CEEMS_TRY(client, net::Client::create(std::move(connection.options)));
  const std::stop_callback on_stop(stop, [&client] { client->cancel(); });
  std::string next;
  do {
    CEEMS_TRY(body,
              kube::get_json(*client,
                             next.empty() ? url : url + "&continue=" + kube::percent_encode(next)));
    CEEMS_TRY(following, read(body));
    next = std::move(following);
  } while (!next.empty());
  return {};
}

Result<kube::RoleBindingList> list_role_bindings(const kube::Connect& connect,
                                                 const std::stop_token& stop) {
  kube::RoleBindingList all;
  CEEMS_TRY(get_pages(connect, "/apis/rbac.authorization.k8s.io/v1/rolebindings", stop,
                      [&all](std::string_view body) -> Result<std::string> {
                        CEEMS_TRY(page, kube::parse_role_bindings(body));
                        all.bindings += page.bindings;
                        std::ranges::move(page.users, std::back_inserter(all.users));
                        if (all.bindings > kMaxBindings || all.users.size() > kMaxBindings) {
                          return fail(ErrorCode::kUnavailable, "more than {} bindings",
                                      kMaxBindings);
                        }
                        return std::move(page.next);
                      }));
  return all;
}

Result<std::vector<kube::ClaimedDevices>> list_resource_claims(const kube::Connect& connect,
                                                               const std::stop_token& stop) {
  Result<> done;
  for (const char* const version : {"v1", "v1beta2", "v1beta1"}) {
    std::vector<kube::ClaimedDevices> all;
    done = get_pages(connect, fmt::format("/apis/resource.k8s.io/{}/resourceclaims", version), stop,
                     [&all](std::string_view body) -> Result<std::string> {
                       CEEMS_TRY(page, kube::parse_resource_claims(body));
                       std::ranges::move(page.devices, std::back_inserter(all));
                       if (all.size() > kMaxBindings) {
                         return fail(ErrorCode::kUnavailable, "more than {} devices", kMaxBindings);
                       }
                       return std::move(page.next);
                     });
    if (done) {
      return all;
    }
  }
  return fail(std::move(done).error());
}

struct ExtraConfig {
  std::string kubeconfig_file;
  std::string users_file;
  bool role_bindings = true;
  K8sUnitOptions units;
};

Result<ExtraConfig> read_extra(const config::Node& node) {
  ExtraConfig extra;
  config::Section section(node);
  // The reference reads the first name; some of its documentation has the second one.
  std::string users_db_file;
  section.text("kubeconfig_file", extra.kubeconfig_file)
      .text("ns_users_list_file", extra.users_file)
      .text("users_db_file", users_db_file)
      .refuse(
          !users_db_file.empty() && !extra.users_file.empty() && users_db_file != extra.users_file,
          "users_db_file", "ns_users_list_file, its other name, has a different value")
      .list("gpu_resource_names", extra.units.gpu_resources)
      .list("username_annotations", extra.units.username_annotations)
      .list("project_annotations", extra.units.project_annotations)
      .boolean("role_bindings", extra.role_bindings)
      .boolean("memory_time_in_mib", extra.units.memory_time_in_mib)
      .boolean("requests_without_limits", extra.units.requests_without_limits);
  CEEMS_TRY(section.done());
  if (extra.users_file.empty()) {
    extra.users_file = std::move(users_db_file);
  }
  // A resource that is listed twice would be counted twice.
  std::set<std::string> seen;
  std::erase_if(extra.units.gpu_resources,
                [&seen](const std::string& name) { return !seen.insert(name).second; });
  return extra;
}

Result<std::unique_ptr<ResourceManager>> create_k8s(const ClusterConfig& config,
                                                    const ManagerContext& context) {
  CEEMS_TRY(extra, read_extra(config.extra));
  auto connect = k8s_connect(extra.kubeconfig_file, *context.runner, *context.clock);
  if (!connect) {
    return fail(std::move(connect).error().with_context("cluster " + config.cluster.id));
  }
  K8sSources sources;
  sources.pods = std::make_unique<kube::PodWatch>(
      kube::PodWatchOptions{.cluster_id = config.cluster.id, .connect = *connect}, *context.clock);
  sources.resource_claims = [connect = *connect](const std::stop_token& stop) {
    return list_resource_claims(connect, stop);
  };
  if (extra.role_bindings) {
    sources.role_bindings = [connect = *std::move(connect)](const std::stop_token& stop) {
      return list_role_bindings(connect, stop);
    };
  }
  sources.users_file_optional = extra.users_file.empty();
  sources.users_file = [file = extra.users_file.empty() ? kDefaultUsersFile : extra.users_file] {
    return config::load_yaml(file);
  };
  return make_k8s(config.cluster.id, std::move(extra.units), std::move(sources), context.zone,
                  *context.clock, kPatience);
}

}  // namespace

std::unique_ptr<ResourceManager> make_k8s(std::string cluster_id,
                                          K8sUnitOptions options,
                                          K8sSources sources,
                                          TimeZone zone,
                                          const Clock& clock,
                                          milliseconds patience) {
  return std::make_unique<K8sManager>(std::move(cluster_id), std::move(options), std::move(sources),
                                      zone, clock, patience);
}

ManagerSpec k8s_manager() {
  return {.name = "k8s",
          .units = "pods",
          .source = "the API server of a Kubernetes cluster",
          .extra_keys = {"kubeconfig_file", "ns_users_list_file", "users_db_file",
                         "gpu_resource_names", "username_annotations", "project_annotations",
                         "role_bindings", "memory_time_in_mib", "requests_without_limits"},
          .create = create_k8s};
}

}  // namespace ceems::ingest
