#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "exporter/ipmi/conversation.h"
#include "exporter/redfish/config.h"
#include "exporter/redfish/documents.h"
#include "net/client/client.h"

namespace ceems::exporter::redfish {

/// Requests to one Redfish service, with or without a login. Connections are kept open. Redirects
/// are followed only on the same host and at most five times, because a token must not go
/// elsewhere. Files named by the configuration (certificates, keys, passwords) are read again when
/// they change, with CAP_DAC_READ_SEARCH raised during the request, because only root may be able
/// to read them. Used by one thread at a time; cancel() may be called by any thread.
class Session {
 public:
  static constexpr std::size_t kMaxBody = std::size_t{2} << 20U;

  /// `config` must have a hostname. Passes on errors of net::Client::create().
  static Result<std::unique_ptr<Session>> create(Config config);
  /// Logs out.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// The body of a successful answer. Errors: kPermissionDenied (401, 403), kNotFound (404),
  /// kInternal (any other status), kTimeout and kUnavailable (no answer). Messages contain no
  /// secrets.
  Result<std::string> get(std::string_view path);

  /// Whether the configuration wants tokens.
  [[nodiscard]] bool wants_token() const;
  /// Gets a token from the collection of sessions. An old one is deleted first.
  Result<> log_in(std::string_view sessions);

  /// Sets the name or address of the BMC for all requests. Call it before the first request.
  void set_hostname(std::string hostname) { config_.hostname = std::move(hostname); }

  /// Makes the request in progress and later ones fail. Logging out at the end still works.
  void cancel() { client_->cancel(); }

 private:
  Session(Config config,
          std::unique_ptr<net::Client> client,
          std::unique_ptr<net::Client> last_client);
  [[nodiscard]] net::Headers headers() const;
  Result<net::ClientResponse> request(bool post, std::string_view path, std::string_view body);
  Result<net::ClientResponse> send(bool post, const std::string& url, std::string_view body);
  void log_out(net::Client& client);

  Config config_;
  std::unique_ptr<net::Client> client_;
  std::unique_ptr<net::Client> last_client_;  // for logging out at the end
  std::string token_;
  std::string session_;  // path of the session on the service
};

/// The name of an address such as "192.0.2.1" by reverse DNS. An error if there is none.
using NameOf = std::function<Result<std::string>(const std::string& address)>;

/// The address of this node's BMC, read through IPMI (LAN channel 1).
Result<std::string> find_bmc_address(ipmi::Port& port, std::chrono::milliseconds timeout);

/// The name of the address without a trailing dot, or the address if it has no name or the lookup
/// fails.
std::string bmc_name(const std::string& address, const NameOf& name_of);

/// A NameOf that uses the system's resolver, for a separate thread: silent DNS servers cost a
/// second each, and other name services may take any time.
Result<std::string> name_by_dns(const std::string& address);

struct ChassisReading {
  std::string label;  ///< Id as a label value; unique
  Watts watts;
  Clock::SteadyTime time{};
};

struct Readings {
  std::vector<ChassisReading>
      chassis;  ///< all chassis with a recent reading, in the order of the list
  /// Power of the node, if it was read just now, scaled to its counter of energy (EnergyScale).
  std::optional<double> node_watts;
};

struct ReaderOptions {
  /// Ids of the chassis that make up the node. Chosen automatically if empty.
  std::vector<std::string> node_chassis;
  /// How long the last reading of a chassis is used when it cannot be read.
  std::chrono::milliseconds max_age{std::chrono::minutes(5)};
};

/// Reads the power of all chassis of a service. Connects first (service root, login, list of
/// chassis) and keeps the result.
///
/// - A refused token (401, 403) is renewed once per read, and the chassis is read again.
/// - Without an answer, or if nothing can be read, it connects again at the next read, then after 5
///   s, 10 s, ... 60 s. After a refused login the pauses are 60 s, 2 min, ... 10 min, because
///   services lock accounts.
/// - The list is read again every 10 minutes, or after a minute if a chassis is gone or there is
///   none.
/// - It reads at most kMaxPages pages and kMaxChassis chassis.
///
/// The power of a chassis is in the first of these resources that has any: Power, and for chassis
/// that contain a computer system (all, if none does) or are configured also EnvironmentMetrics,
/// the supplies of PowerSubsystem, Sensors. A chassis without any is left out. If no chassis has
/// any, that is an error (kNoData), which lists what was there. Fallbacks are tried again every
/// minute.
///
/// If no chassis is configured, the power of the node is the greatest current power among the
/// chassis that contain a computer system, or among all if none does. Chassis contain each other
/// (node, GPU tray), so their sum would count energy twice.
///
/// The counter of energy that scales the power of the node is read every 15 s from the first of
/// EnvironmentMetrics, the supplies of PowerSubsystem and Sensors that has one.
///
/// Used by one thread at a time.
class Reader {
 public:
  static constexpr std::size_t kMaxPages = 32;
  static constexpr std::size_t kMaxChassis = 128;

  Reader(std::unique_ptr<Session> session, ReaderOptions options, const Clock& clock);

  /// See Session::set_hostname().
  void set_hostname(std::string hostname) { session_->set_hostname(std::move(hostname)); }
  /// The readings; an error if no chassis could be read. After `stop` it ends soon and must not be
  /// used again.
  Result<Readings> read(const std::stop_token& stop);

 private:
  /// Resources that may have the power of a chassis, in the order in which they are tried.
  enum class PowerPlace { kPower, kEnvironment, kSupplies, kSensors };

  struct Known {
    Chassis chassis;
    std::string label;
    ChassisReading last;  ///< valid if was_read
    bool was_read = false;
    bool fresh = false;  ///< last was read by this read()
    /// Where its power was found.
    std::optional<PowerPlace> place{};
    std::optional<Error> nothing{};  ///< kNoData of the last read: it has no power
    Clock::SteadyTime next_search{};
    /// Paths whose sum is its counter of energy; not searched yet if unset.
    std::optional<std::vector<std::string>> energy{};
    Clock::SteadyTime next_energy{};
    EnergyScale scale{};
    double corrected_watts = 0;  ///< of `last`
  };

  Result<> connect();
  Result<> list_chassis(std::string_view collection);
  Result<> add_chassis(const std::string& link, std::vector<Known>& found);
  Result<Readings> read_all();
  Result<Watts> read_power(Known& known);
  Result<Watts> search_power(Known& known);
  Result<Watts> read_place(const Chassis& chassis, PowerPlace place);
  Result<std::vector<std::string>> supply_metrics(const std::string& subsystem);
  Result<Watts> read_supplies(const std::string& subsystem);
  Result<Watts> read_sensors(const std::string& collection);
  void correct(Known& known);
  std::optional<EnergyCounter> read_energy(Known& known);
  Result<std::string> get_renewing(const std::string& path);
  [[nodiscard]] bool may_fall_back(const Known& known) const;
  Result<> renew();
  void back_off(const Error& error);
  void report_partial(const std::optional<Error>& error);
  [[nodiscard]] Readings collect_readings();
  [[nodiscard]] std::optional<double> node_watts();

  std::unique_ptr<Session> session_;
  ReaderOptions options_;
  const Clock& clock_;

  bool connected_ = false;
  ServiceRoot root_;
  std::vector<Known> chassis_;
  bool chassis_gone_ = false;
  Clock::SteadyTime listed_{};
  std::string node_;  // label of the chassis that is the node

  std::optional<Error> last_error_;  // of the last attempt to connect
  Clock::SteadyTime next_attempt_{};
  std::chrono::seconds pause_{0};
  Clock::SteadyTime next_renewal_{};
  bool renewed_ = false;  // in this read
  bool partial_ = false;
};

}  // namespace ceems::exporter::redfish
