#include "common/parallel.h"

namespace quantgate {

RunTeam run_team = nullptr;

}  // namespace quantgate

extern "C" void quantgate_use_team(void* entry) { quantgate::run_team = reinterpret_cast<quantgate::RunTeam>(entry); }
