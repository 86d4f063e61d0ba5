package androidx.lifecycle;

/** A stub of androidx.lifecycle. */
public final class ProcessLifecycleOwner implements LifecycleOwner {
    private static final ProcessLifecycleOwner OWNER = new ProcessLifecycleOwner();
    private final Lifecycle lifecycle = new Lifecycle(this);

    public static LifecycleOwner get() {
        return OWNER;
    }

    @Override public Lifecycle getLifecycle() {
        return lifecycle;
    }
}
