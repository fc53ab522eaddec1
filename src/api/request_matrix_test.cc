// Every endpoint, on both databases, in every role, with and without each of its parameters: no
// request fails, and both databases give the same answer.
#include <array>
#include <map>
#include <string>
#include <string_view>

#include "api/server_test_support.h"

namespace ceems::api {
namespace {

// "eve" leads a project.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kRoles = {
    {{"nobody", ""}, {"user", "ada"}, {"lead", "eve"}, {"support", "sue"}, {"admin", "root"}}};

/// The server of ServerTest on one kind of database.
class AskedServer final : public ServerTest {
 public:
  explicit AskedServer(store::Backend backend) : ServerTest(backend) {}
  ~AskedServer() override = default;
  void TestBody() override {}

  void start() {
    SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    ApiOptions options;
    options.roles.support = {"sue"};
    options.roles.project_leads = {{.cluster_id = "hpc-a", .project = "optics", .users = {"eve"}}};
    options.accounting.budgets = {{.cluster = "hpc-a", .project = "fluids", .amount = 5}};
    make(std::move(options));
  }

  /// Role and request to status and body.
  std::map<std::string, std::string> answers() {
    std::map<std::string, std::string> all;
    for (const Endpoint& endpoint : all_endpoints()) {
      for (const auto& [role, user] : kRoles) {
        for (const std::string& target : targets(endpoint)) {
          const net::Response response = endpoint.method() == "GET"
                                             ? get("/api/v1/" + target, std::string(user))
                                             : change("/api/v1/" + target, endpoint, user);
          all[fmt::format("{} {}", role, target)] =
              fmt::format("{} {}", response.status, response.body);
        }
      }
    }
    return all;
  }

 private:
  net::Response change(const std::string& target, const Endpoint& endpoint, std::string_view user) {
    net::Headers headers{{"Content-Type", "application/json"}};
    if (!user.empty()) {
      headers.emplace_back("X-Grafana-User", std::string(user));
    }
    net::Request request = request_for(std::string(endpoint.method()), target, std::move(headers));
    request.body = endpoint.body.example;
    net::Response response;
    server_->handle(request, response);
    return response;
  }

  static std::string argument(const ParamInfo& info) {
    std::string value(info.example);
    switch (info.param) {  // those that select rows of the test's database
      case Param::kUuid:
        value = "1";
        break;
      case Param::kFrom:
        value = std::to_string((kNow - 2 * kHour) / 1000);
        break;
      case Param::kTo:
        value = std::to_string(kNow / 1000);
        break;
      case Param::kStart:
        value = std::to_string(kNow - kHour);
        break;
      case Param::kMonth:
        value = "2025-12";
        break;
      case Param::kPartition:
      case Param::kQos:
      case Param::kQueue:
        value = "std";
        break;
      default:
        break;
    }
    return fmt::format("{}={}&", info.name, net::url_encode(value));
  }

  /// What is required alone, with each of the other parameters, and all of them without one.
  static std::vector<std::string> targets(const Endpoint& endpoint) {
    const std::string path = std::string(endpoint.path) + "?";
    std::string required;
    std::vector<std::string> others;
    for (const ParamInfo& info : all_params()) {
      if (endpoint.required.contains(info.param)) {
        required += argument(info);
      } else if (endpoint.params.contains(info.param) && info.param != Param::kCursor) {
        others.push_back(argument(info));
      }
    }
    std::vector<std::string> all{std::string(endpoint.path), path + required};
    for (std::size_t left_out = 0; left_out < others.size(); ++left_out) {
      all.push_back(path + required + others[left_out]);
      std::string most = path + required;
      for (std::size_t i = 0; i < others.size(); ++i) {
        most += i == left_out ? "" : others[i];
      }
      all.push_back(std::move(most));
    }
    return all;
  }
};

std::string status_of(const std::string& answer) {
  return answer.substr(0, answer.find(' '));
}

/// No answer is an error of the server, and roles get what their endpoints allow.
void expect_sound(const std::map<std::string, std::string>& answers) {
  std::map<std::string, int> good;  // by role
  for (const auto& [request, answer] : answers) {
    const std::string status = status_of(answer);
    EXPECT_LT(status, "500") << request << ": " << answer;
    if (request.starts_with("nobody ") && status != "401") {
      EXPECT_TRUE(request.starts_with("nobody demo/") || request.contains("anonymous=")) << request;
    }
    good[request.substr(0, request.find(' '))] += status == "200" ? 1 : 0;
  }
  EXPECT_GT(good["user"], 200);
  EXPECT_GT(good["admin"], 2 * good["user"] / 3 + 200);
  EXPECT_GE(good["admin"], good["support"]);
}

/// Asked once for all tests.
const std::map<std::string, std::string>& answers_of_sqlite() {
  static const auto answers = [] {
    AskedServer server(store::Backend::kSqlite);
    server.start();
    return server.answers();
  }();
  return answers;
}

TEST(RequestMatrix, NoRequestFailsOnSqlite) {
  expect_sound(answers_of_sqlite());
}

TEST(RequestMatrix, PostgresAnswersAsSqliteDoes) {
  AskedServer postgres(store::Backend::kPostgres);
  postgres.start();
  if (IsSkipped()) {
    return;
  }
  const auto answers = postgres.answers();
  expect_sound(answers);
  const auto& expected = answers_of_sqlite();
  ASSERT_EQ(answers.size(), expected.size());
  for (const auto& [request, answer] : answers) {
    if (!request.contains(" demo/")) {  // whose rows are made up at random
      EXPECT_EQ(answer, expected.at(request)) << request;
    }
  }
}

}  // namespace
}  // namespace ceems::api
