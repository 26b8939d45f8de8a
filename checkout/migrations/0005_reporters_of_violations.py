from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("checkout", "0004_payment_page_security")]

    operations = [
        migrations.AddField(
            model_name="policyviolation",
            name="reporter",
            field=models.CharField(default="", editable=False, max_length=16),
        ),
    ]
