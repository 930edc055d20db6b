package dev.fila.client;

import dev.fila.v1.Permission;
import dev.fila.v1.Right;
import java.util.ArrayList;
import java.util.List;

/**
 * Rights on queues, by names or patterns such as {@code orders.*}, in which {@code *} stands for
 * any run of characters. Immutable.
 */
public final class Rights {
    private final List<Permission> permissions;

    private Rights(List<Permission> permissions) {
        this.permissions = permissions;
    }

    /** None. */
    public static Rights none() {
        return builder().build();
    }

    /** Begins with none. */
    public static Builder builder() {
        return new Builder();
    }

    List<Permission> permissions() {
        return permissions;
    }

    /** Collects rights. */
    public static final class Builder {
        private final List<Permission> permissions = new ArrayList<>();

        private Builder() {}

        /** To enqueue. */
        public Builder produce(String... patterns) {
            return add(Right.RIGHT_PRODUCE, patterns);
        }

        /** To receive, settle, peek and read the log; {@code orders.*:billing} names channels. */
        public Builder consume(String... patterns) {
            return add(Right.RIGHT_CONSUME, patterns);
        }

        /** To create, change, purge, seek and delete queues and channels. */
        public Builder manage(String... patterns) {
            return add(Right.RIGHT_MANAGE, patterns);
        }

        /** To look at numbers and events; at no message. */
        public Builder view(String... patterns) {
            return add(Right.RIGHT_VIEW, patterns);
        }

        /** To take messages back, by id or dedup key. */
        public Builder cancel(String... patterns) {
            return add(Right.RIGHT_CANCEL, patterns);
        }

        /** To everything, keys and runtime config included. */
        public Builder admin() {
            permissions.add(Permission.newBuilder().setRight(Right.RIGHT_ADMIN).build());
            return this;
        }

        private Builder add(Right right, String... patterns) {
            for (String pattern : patterns) {
                int colon = pattern.indexOf(':');
                Permission.Builder permission = Permission.newBuilder().setRight(right);
                if (colon < 0) {
                    permission.setQueue(pattern);
                } else {
                    permission.setQueue(pattern.substring(0, colon));
                    permission.setChannel(pattern.substring(colon + 1));
                }
                permissions.add(permission.build());
            }
            return this;
        }

        /** The rights as they stand now. */
        public Rights build() {
            return new Rights(List.copyOf(permissions));
        }
    }
}
