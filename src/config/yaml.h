#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::config {

/// One value of a YAML document, with its position. The typed getters fail with messages such as
/// "ceems.yml:12: clusters[0].manager: expected one of slurm, openstack, k8s; got 'slrum'". A node
/// is a cheap handle that can be copied; the data lives as long as any handle to it. yaml-cpp is
/// visible only in yaml.cc.
class Node {
 public:
  Node();  ///< an absent value
  ~Node();
  Node(const Node&);
  Node& operator=(const Node&);

  [[nodiscard]] bool present() const;  ///< exists and is not null
  [[nodiscard]] bool is_null() const;  ///< exists and is null ("key:")
  [[nodiscard]] bool is_map() const;
  [[nodiscard]] bool is_list() const;
  [[nodiscard]] bool is_plain() const;             ///< a scalar without quotes or tag
  [[nodiscard]] int line() const;                  ///< counted from 1; 0 when absent
  [[nodiscard]] const std::string& where() const;  ///< "clusters[0].manager"

  [[nodiscard]] Node operator[](std::string_view key) const;  ///< absent if missing or not a map
  [[nodiscard]] std::vector<Node> items() const;              ///< the items of a list
  [[nodiscard]] std::vector<std::pair<std::string, Node>> entries()
      const;  ///< the entries of a map, in file order

  [[nodiscard]] Result<std::string> as_string() const;
  [[nodiscard]] Result<bool> as_bool() const;
  [[nodiscard]] Result<std::int64_t> as_int() const;
  [[nodiscard]] Result<double> as_double() const;
  /// See parse_duration().
  [[nodiscard]] Result<std::chrono::milliseconds> as_duration() const;
  [[nodiscard]] Result<std::vector<std::string>> as_string_list()
      const;  ///< the scalars of a list, as text

  /// A kInvalidArgument error "file:line: where: message", for a value that has the right type but
  /// is not acceptable.
  [[nodiscard]] Error error(std::string_view message) const;
  /// Fails at the first key that is not in `known`, and suggests the closest known key.
  [[nodiscard]] Result<> only_keys(std::span<const std::string_view> known) const;
  [[nodiscard]] Result<> only_keys(std::initializer_list<std::string_view> known) const {
    return only_keys(std::span(known.begin(), known.size()));
  }

 private:
  friend struct YamlAccess;
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

/// Parses one document. Duplicate keys are errors. `file` is used in messages only. An empty text
/// gives a null node.
Result<Node> parse_yaml(std::string_view text, std::string_view file);
/// Reads and parses a file. With `expand_env`, the text goes through expand_environment() first.
Result<Node> load_yaml(const std::string& path, bool expand_env = false);
/// The directory of a file, against which relative names in it are resolved. Empty for the working
/// directory.
std::string directory_of(const std::string& path);
/// Reads the configuration file of a program. `parse` is called with the document and
/// directory_of() the file. An empty path is read as ".", which fails with "Is a directory".
template <typename Parse>
auto read_config(const std::string& path, bool expand_env, const Parse& parse)
    -> decltype(parse(Node{}, std::string{})) {
  constexpr std::string_view kContext = "failed to parse config file";
  CEEMS_TRY_IN(kContext, document, load_yaml(path.empty() ? "." : path, expand_env));
  CEEMS_TRY_IN(kContext, config, parse(document, directory_of(path)));
  return config;
}

}  // namespace ceems::config
