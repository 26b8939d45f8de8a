from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("gateway", "0014_query"),
    ]

    operations = [
        migrations.CreateModel(
            name="TimerRun",
            fields=[
                ("name", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("last_at", models.DateTimeField()),
                ("last_ms", models.IntegerField()),
                ("runs", models.BigIntegerField(default=0)),
                ("done", models.BigIntegerField(default=0)),
                ("failures", models.BigIntegerField(default=0)),
                ("busy", models.BigIntegerField(default=0)),
                ("failed_at", models.DateTimeField(null=True)),
                ("last_failure", models.CharField(blank=True, default="", max_length=200)),
            ],
        ),
    ]
