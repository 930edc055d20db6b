package dev.fila.client;

import dev.fila.v1.CreateScheduleRequest;
import dev.fila.v1.DeleteScheduleRequest;
import dev.fila.v1.GetScheduleRequest;
import dev.fila.v1.ListSchedulesRequest;
import dev.fila.v1.ListSchedulesResponse;
import dev.fila.v1.PauseScheduleRequest;
import dev.fila.v1.Schedule;
import dev.fila.v1.ScheduleSettings;
import dev.fila.v1.UpdateScheduleRequest;
import org.jspecify.annotations.Nullable;

/** Schedules: messages that the broker enqueues by itself, by a cron line or at an interval. */
public abstract sealed class ScheduleCalls extends DeadLetterCalls permits LimitCalls {
    ScheduleCalls(Connection connection) {
        super(connection);
    }

    /**
     * Makes a schedule of a queue. Throws QueueNotFoundException, ExistsException, InvalidException
     * (for a cron line that never fires, too).
     */
    public Schedule createSchedule(String queue, String schedule, ScheduleSettings settings) {
        CreateScheduleRequest request =
                CreateScheduleRequest.newBuilder()
                        .setQueue(queue)
                        .setSchedule(schedule)
                        .setSettings(settings)
                        .build();
        return call(Rpc.CREATE_SCHEDULE, request, about(queue)).getSchedule();
    }

    /**
     * Gives a schedule these settings, and all that are left out their defaults. Throws
     * QueueNotFoundException, NotFoundException, InvalidException.
     */
    public Schedule updateSchedule(String queue, String schedule, ScheduleSettings settings) {
        UpdateScheduleRequest request =
                UpdateScheduleRequest.newBuilder()
                        .setQueue(queue)
                        .setSchedule(schedule)
                        .setSettings(settings)
                        .build();
        return call(Rpc.UPDATE_SCHEDULE, request, about(queue)).getSchedule();
    }

    /**
     * Pauses a schedule, or lets it go on with the first moment that comes. Throws
     * QueueNotFoundException, NotFoundException.
     */
    public Schedule pauseSchedule(String queue, String schedule, boolean paused) {
        return pauseSchedule(queue, schedule, paused, "");
    }

    /** The same; {@code comment} says why, in at most 1,024 bytes, and is kept with the pause. */
    public Schedule pauseSchedule(String queue, String schedule, boolean paused, String comment) {
        PauseScheduleRequest request =
                PauseScheduleRequest.newBuilder()
                        .setQueue(queue)
                        .setSchedule(schedule)
                        .setPaused(paused)
                        .setComment(comment)
                        .build();
        return call(Rpc.PAUSE_SCHEDULE, request, about(queue)).getSchedule();
    }

    /**
     * Deletes a schedule; what it has enqueued stays. Throws QueueNotFoundException,
     * NotFoundException.
     */
    public void deleteSchedule(String queue, String schedule) {
        DeleteScheduleRequest request =
                DeleteScheduleRequest.newBuilder().setQueue(queue).setSchedule(schedule).build();
        call(Rpc.DELETE_SCHEDULE, request, about(queue));
    }

    /**
     * How a schedule stands, with its next five moments. Throws QueueNotFoundException,
     * NotFoundException.
     */
    public Schedule getSchedule(String queue, String schedule) {
        GetScheduleRequest request =
                GetScheduleRequest.newBuilder().setQueue(queue).setSchedule(schedule).build();
        return call(Rpc.GET_SCHEDULE, request, about(queue)).getSchedule();
    }

    /** The first 100 schedules of a queue, or of all when it is null. */
    public ListSchedulesResponse listSchedules(@Nullable String queue) {
        return listSchedules(queue, 0, "");
    }

    /**
     * Schedules with their next five moments, of one queue or, when it is null, of all: {@code
     * pageSize} of them (0 for 100, at most 1,000), behind an earlier page where its {@code
     * next_page_token} is given.
     */
    public ListSchedulesResponse listSchedules(
            @Nullable String queue, int pageSize, String pageToken) {
        ListSchedulesRequest request =
                ListSchedulesRequest.newBuilder()
                        .setQueue(orEmpty(queue))
                        .setPageSize(Arguments.inRange("pageSize", pageSize, 0, Integer.MAX_VALUE))
                        .setPageToken(pageToken)
                        .build();
        return call(Rpc.LIST_SCHEDULES, request, about(orEmpty(queue)));
    }
}
