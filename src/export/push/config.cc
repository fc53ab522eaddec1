#include "export/push/config.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "config/section.h"
#include "net/client/client_config.h"
#include "net/unix_url.h"

namespace ceems::exporting {
namespace {

Result<Target> read_target(const config::Node& item, const std::string& directory) {
  Target target;
  std::string protocol;
  std::vector<std::string> labels;
  config::Section section(item);
  section.only({"name", "protocol", "web", "labels"})
      .text("name", target.name)
      .text("protocol", protocol)
      .list("labels", labels)
      .refuse(target.name.empty() || !has_only_words(target.name, "_-."), "name",
              "expected a name of letters, digits, _, - and .")
      .refuse(protocol != "remote_write" && protocol != "otlp", "protocol",
              "expected remote_write or otlp");
  target.protocol = protocol == "otlp" ? Protocol::kOtlp : Protocol::kRemoteWrite;
  for (const std::string& label : labels) {
    section.refuse(label != "user" && label != "project", "labels", "expected user or project");
    target.with_user = target.with_user || label == "user";
    target.with_project = target.with_project || label == "project";
  }
  config::Section web(item["web"]);
  web.text("url", target.url);
  section.also(web.done())
      .refuse(!target.url.starts_with("http://") && !target.url.starts_with("https://") &&
                  !net::is_unix_url(target.url),
              "web", "expected web.url, such as http://prometheus:9090/api/v1/write");
  if (section.ok()) {
    CEEMS_TRY(client, net::client_options(item["web"], directory, {"url"}));
    target.client = std::move(client);
  }
  return section.ok() ? Result<Target>(std::move(target)) : fail(section.done().error());
}

}  // namespace

Result<std::vector<Target>> read_targets(const config::Node& list, const std::string& directory) {
  if (list.present() && !list.is_list()) {
    return fail(list.error("expected a list"));
  }
  std::vector<Target> targets;
  for (const config::Node& item : list.items()) {
    CEEMS_TRY(target, read_target(item, directory));
    if (std::ranges::find(targets, target.name, &Target::name) != targets.end()) {
      return fail(item["name"].error(fmt::format("there are two targets '{}'", target.name)));
    }
    targets.push_back(std::move(target));
  }
  return targets;
}

}  // namespace ceems::exporting
