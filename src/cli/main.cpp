// `weft`: parses the command line, runs the command chosen, turns what it returns into an exit code.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "api/state.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/errors.h"

namespace weft::cli {
namespace {

struct Command {
  const char* name;
  const char* doc;
  Action (*add)(CLI::App& app);
};

constexpr Command kCommands[] = {
    {"run", "runs a model and writes its outputs", add_run},
    {"verify", "compares compiled code with the reference interpreter", add_verify},
    {"diff", "finds the first value that compiled code gets wrong", add_diff},
    {"check", "lists all that stands in the way of running a model", add_check},
    {"info", "says what a model is: inputs, outputs, operators, weights; or what an object file needs", add_info},
    {"bench", "measures a model: time, memory, work", add_bench},
    {"explain", "says what became of a model's operators, kernel by kernel", add_explain},
    {"compile", "prints what each stage of the compiler makes of a model", add_compile},
    {"opt", "prints the graph after the graph passes", add_opt},
    {"conformance", "runs test cases in the layout of the ONNX backend suite", add_conformance},
    {"tune", "finds the fastest schedules of a model's kernels by measuring", add_tune},
    {"doctor", "says what Weft found on this machine", add_doctor},
};

struct CommandLine {
  CLI::App app{"Weft compiles a model to machine code and runs it.", "weft"};
  std::vector<std::string> names{"help"};
  Action action;

  CommandLine() {
    app.set_version_flag("--version", fmt::format("weft {}", version()));
    app.set_help_flag("-h,--help", "prints this");
    app.footer("'weft help COMMAND' says more about one command.");
    for (const Command& c : kCommands) {
      CLI::App* sub = app.add_subcommand(c.name, c.doc);
      Action chosen = c.add(*sub);
      sub->callback([this, chosen] { action = chosen; });
      names.push_back(c.name);
    }
    app.add_subcommand("help", "prints what a command does and its options");
  }
};

Error explain(const CLI::ParseError& e, const CommandLine& line) {
  const CLI::App* at = &line.app;
  for (const CLI::App* sub : line.app.get_subcommands()) at = sub;
  std::vector<std::string> extras = line.app.remaining(true);
  if (dynamic_cast<const CLI::ExtrasError*>(&e) && !extras.empty()) {
    const std::string word = extras[0].substr(0, extras[0].find('='));
    if (word.empty() || word[0] != '-') return usage_error("one argument too many").at(word);
    std::vector<std::string> options;
    for (const CLI::Option* option : at->get_options()) {
      for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
    }
    return usage_error("there is no such option").at(word).suggest(did_you_mean(word, options));
  }
  std::string message = e.what();
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::string topic = at == &line.app ? "" : " " + at->get_name();
  return usage_error(message).suggest(fmt::format("see 'weft help{}'", topic));
}

// `weft help [COMMAND]`; not left to the parser, to which COMMAND is a command to run.
Result<int> print_help(CommandLine& line, int argc, char** argv) {
  if (argc > 3) return usage_error("one argument too many").at(argv[3]);
  const bool of_itself = argc == 3 && (argv[2] == std::string("-h") || argv[2] == std::string("--help"));
  if (argc < 3 || of_itself) {
    fmt::print("{}", line.app.help());
    return kSuccess;
  }
  WEFT_TRY(require_one_of("command", argv[2], line.names));
  fmt::print("{}", line.app.get_subcommand(argv[2])->help("weft"));
  return kSuccess;
}

Result<int> dispatch(int argc, char** argv) {
  CommandLine line;
  if (argc < 2) return usage_error("no command given").suggest("'weft help' lists them");
  if (argv[1][0] != '-') WEFT_TRY(require_one_of("command", argv[1], line.names));
  if (argv[1] == std::string("help")) return print_help(line, argc, argv);
  try {
    line.app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help, --version
    return line.app.exit(e);
  } catch (const CLI::ParseError& e) {
    return explain(e, line);
  }
  if (!line.action) return usage_error("no command given").suggest("'weft help' lists them");
  return line.action();
}

}  // namespace
}  // namespace weft::cli

int main(int argc, char** argv) {
  weft::Result<int> code = weft::at_the_edge([&] { return weft::cli::dispatch(argc, argv); });
  if (code.ok()) return *code;
  weft::cli::report(code.error());
  return weft::cli::exit_code(code.error());
}
