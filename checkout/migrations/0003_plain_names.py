from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("checkout", "0002_safeguards")]

    operations = [migrations.RenameField("checkout", "hidden", "hidden_brands")]
