#include "common/parallel.h"

namespace quantgate {

RunTeam run_team = nullptr;
TeamSize team_size = nullptr;

}  // namespace quantgate

// run: as GOMP_parallel; size: as omp_get_num_threads. Either may be null: then loops run on the calling thread.
extern "C" void quantgate_use_team(void* run, void* size) {
    quantgate::run_team = reinterpret_cast<quantgate::RunTeam>(run);
    quantgate::team_size = reinterpret_cast<quantgate::TeamSize>(size);
}
