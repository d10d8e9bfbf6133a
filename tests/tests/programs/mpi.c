/* Allreduce and a ring over all ranks, each element of the results checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 300000 };
static const int COUNTS[] = {1, 100, 5000, MOST};

static void wrong(const char *what, int count, int at, long got, long wanted)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("rank %d: %s of %d, element %d: %ld, wanted %ld\n", rank, what, count, at, got, wanted);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void allreduce(long *own, long *sum, int count, int rank, int ranks)
{
    for (int i = 0; i < count; i++)
        own[i] = (long)(rank + 1) * (i + 7);
    MPI_Allreduce(own, sum, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        long wanted = (long)ranks * (ranks + 1) / 2 * (i + 7);
        if (sum[i] != wanted)
            wrong("allreduce", count, i, sum[i], wanted);
    }
}

/* Each rank adds its own to what comes from the left, and hands it to the right. */
static void ring(long *data, int count, int rank, int ranks)
{
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    if (rank == 0) {
        for (int i = 0; i < count; i++)
            data[i] = i;
        MPI_Send(data, count, MPI_LONG, right, count, MPI_COMM_WORLD);
    }
    MPI_Recv(data, count, MPI_LONG, left, count, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    long so_far = rank == 0 ? (long)ranks * (ranks - 1) / 2 : (long)rank * (rank - 1) / 2;
    for (int i = 0; i < count; i++) {
        if (data[i] != i + so_far)
            wrong("ring", count, i, data[i], i + so_far);
        data[i] += rank;
    }
    if (rank != 0)
        MPI_Send(data, count, MPI_LONG, right, count, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    long *own = malloc(MOST * sizeof *own), *sum = malloc(MOST * sizeof *sum);
    if (!own || !sum)
        MPI_Abort(MPI_COMM_WORLD, 4);
    for (unsigned i = 0; i < sizeof COUNTS / sizeof *COUNTS; i++) {
        allreduce(own, sum, COUNTS[i], rank, ranks);
        ring(own, COUNTS[i], rank, ranks);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks: allreduce and ring are right\n", ranks);
    free(own);
    free(sum);
    MPI_Finalize();
    return 0;
}
