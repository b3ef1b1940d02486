// field_options: prints a line for each field of a problem or a schedule that a
// command takes: the command, the option, and its help.
#include <kiln/kernels/attention.h>
#include <kiln/kernels/gemm.h>
#include <kiln/kernels/grouped_gemm.h>

#include <cstdio>

template <typename Record> static void list(const char *command) {
  for (const kiln::Field<Record> &field : Record::fields()) {
    std::string option = "--" + std::string(field.option_name());
    if (field.form == kiln::FieldForm::size)
      option = "sizes";
    std::printf("%s\t%s\t%s\n", command, option.c_str(),
                std::string(field.help).c_str());
  }
}

int main() {
  for (const char *command : {"gemm", "emit", "bench"}) {
    list<kiln::GemmProblem>(command);
    list<kiln::GemmSchedule>(command);
  }
  list<kiln::GemmProblem>("tune");
  list<kiln::AttentionProblem>("attention");
  list<kiln::AttentionSchedule>("attention");
  list<kiln::GroupedGemmProblem>("grouped-gemm");
  list<kiln::GroupedGemmSchedule>("grouped-gemm");
}
